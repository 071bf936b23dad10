import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Shares partitions out with the assignors of Kafka's own client.
 *
 * <p>A line is a group: the assignor's name, then topics and members, each in words that are parted by blanks:
 * <pre>
 * T name racks,racks,...                                       a partition's racks are parted by +, - for none
 * M id topics generation owned rack instance userdata          lists are parted by +, - for none; partitions as topic:0
 * </pre>
 * The answer is a line of words member=topic:0+topic:1, or `error` and why.
 */
public final class AssignorOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = shares(line.split(" "));
            } catch (RuntimeException failure) {
                answer = "error " + failure;
            }
            System.out.println(answer.replace('\n', ' '));
            System.out.flush();
        }
    }

    private static String shares(String[] words) {
        Map<String, Node> nodes = new HashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        Map<String, Subscription> members = new HashMap<>();
        for (int at = 1; at < words.length; ) {
            if (words[at].equals("T")) {
                addTopic(words[at + 1], words[at + 2].split(","), nodes, partitions);
                at += 3;
            } else {
                members.put(words[at + 1], subscription(words, at + 2));
                at += 8;
            }
        }
        Cluster cluster = new Cluster("c", nodes.values(), partitions, Set.of(), Set.of());
        Map<String, Assignment> given = assignor(words[0]).assign(cluster, new GroupSubscription(members)).groupAssignment();
        return new TreeMap<>(given).entrySet().stream()
            .map(entry -> entry.getKey() + "=" + entry.getValue().partitions().stream()
                .map(each -> each.topic() + ":" + each.partition())
                .collect(Collectors.joining("+")))
            .collect(Collectors.joining(" "));
    }

    private static void addTopic(String name, String[] racks, Map<String, Node> nodes, List<PartitionInfo> partitions) {
        for (int number = 0; number < racks.length; number++) {
            Node[] replicas = Arrays.stream(racks[number].split("\\+"))
                .map(rack -> nodes.computeIfAbsent(
                    rack, each -> new Node(nodes.size(), "h", 1, each.equals("-") ? null : each)))
                .toArray(Node[]::new);
            partitions.add(new PartitionInfo(name, number, replicas[0], replicas, replicas));
        }
    }

    private static Subscription subscription(String[] words, int at) {
        List<TopicPartition> owned = list(words[at + 2]).stream()
            .map(each -> each.split(":"))
            .map(each -> new TopicPartition(each[0], Integer.parseInt(each[1])))
            .collect(Collectors.toList());
        ByteBuffer userData = words[at + 5].equals("-") ? null : ByteBuffer.wrap(HexFormat.of().parseHex(words[at + 5]));
        Subscription subscription = new Subscription(
            list(words[at]), userData, owned, Integer.parseInt(words[at + 1]), optional(words[at + 3]));
        subscription.setGroupInstanceId(optional(words[at + 4]));
        return subscription;
    }

    private static Optional<String> optional(String word) {
        return word.equals("-") ? Optional.empty() : Optional.of(word);
    }

    private static List<String> list(String word) {
        return word.equals("-") ? List.of() : List.of(word.split("\\+"));
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }
}
