import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;

/** For each line "KEY PARTITIONS", the key in base64, the partition that Java's producer sends it to. */
public class PartitionOracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            byte[] key = Base64.getDecoder().decode(words[0]);
            System.out.println(BuiltInPartitioner.partitionForKey(key, Integer.parseInt(words[1])));
        }
    }
}
