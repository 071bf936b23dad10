import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import kafka.security.authorizer.AclAuthorizer;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.security.authorizer.AclEntry;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * What AclAuthorizer decides, without a ZooKeeper. Lines of words between tabs, principals and names in base64:
 *   new ALLOW_EVERYONE SUPER_USER   forgets all before
 *   acl TYPE PATTERN NAME PRINCIPAL HOST OPERATION PERMISSION
 *   ask PRINCIPAL HOST OPERATION TYPE NAME   prints 1 or 0, and whether there may be any such resource: 1 or 0
 */
public class AclOracle {
    private record Client(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() {
            return "PLAINTEXT";
        }

        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        public int requestType() {
            return 1;
        }

        public int requestVersion() {
            return 12;
        }

        public String clientId() {
            return "oracle";
        }

        public int correlationId() {
            return 0;
        }
    }

    private static final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private static AclAuthorizer authorizer;
    private static final Map<ResourcePattern, Set<AclEntry>> acls = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "new" -> begin(words[1].equals("true"), text(words[2]));
                case "acl" -> add(words);
                default -> ask(words);
            }
        }
        out.flush();
    }

    private static void begin(boolean allowsEveryone, String superUser) throws Exception {
        authorizer = new AclAuthorizer();
        acls.clear();
        Field everyone = AclAuthorizer.class.getDeclaredField("shouldAllowEveryoneIfNoAclIsFound");
        everyone.setAccessible(true);
        everyone.setBoolean(authorizer, allowsEveryone);
        Field superUsers = AclAuthorizer.class.getDeclaredField("superUsers");
        superUsers.setAccessible(true);
        superUsers.set(authorizer, immutable(Set.of(SecurityUtils.parseKafkaPrincipal(superUser))));
    }

    private static void add(String[] words) {
        ResourcePattern pattern = new ResourcePattern(
            ResourceType.valueOf(words[1]), text(words[3]), PatternType.valueOf(words[2]));
        AccessControlEntry entry = new AccessControlEntry(
            text(words[4]), words[5], AclOperation.valueOf(words[6]), AclPermissionType.valueOf(words[7]));
        acls.computeIfAbsent(pattern, each -> new HashSet<>()).add(new AclEntry(entry));
    }

    private static void ask(String[] words) throws Exception {
        acls.forEach((pattern, entries) ->
            authorizer.updateCache(pattern, new AclAuthorizer.VersionedAcls(immutable(entries), 1)));
        acls.clear();
        Client client = new Client(SecurityUtils.parseKafkaPrincipal(text(words[1])), InetAddress.getByName(words[2]));
        AclOperation operation = AclOperation.valueOf(words[3]);
        ResourceType type = ResourceType.valueOf(words[4]);
        ResourcePattern resource = new ResourcePattern(type, text(words[5]), PatternType.LITERAL);
        AuthorizationResult one =
            authorizer.authorize(client, List.of(new Action(operation, resource, 1, false, false))).get(0);
        AuthorizationResult any = authorizer.authorizeByResourceType(client, operation, type);
        out.println(number(one) + " " + number(any));
    }

    private static int number(AuthorizationResult result) {
        return result == AuthorizationResult.ALLOWED ? 1 : 0;
    }

    private static String text(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }

    private static <T> scala.collection.immutable.Set<T> immutable(Set<T> set) {
        return scala.jdk.javaapi.CollectionConverters.asScala(set).toSet();
    }
}
