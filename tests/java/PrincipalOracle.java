import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Base64;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * For each line "RULES CERTIFICATE", both in base64: the certificate's subject as Java names it, and what Kafka's rules
 * make of that, or "-" where none applies. Both in base64.
 */
public class PrincipalOracle {
    public static void main(String[] arguments) throws Exception {
        CertificateFactory certificates = CertificateFactory.getInstance("X.509");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            String rules = new String(Base64.getDecoder().decode(words[0]), StandardCharsets.UTF_8);
            byte[] der = Base64.getDecoder().decode(words[1]);
            X509Certificate certificate =
                (X509Certificate) certificates.generateCertificate(new ByteArrayInputStream(der));
            String name = certificate.getSubjectX500Principal().getName();
            String mapped;
            try {
                mapped = encoded(SslPrincipalMapper.fromRules(rules).getName(name));
            } catch (SslPrincipalMapper.NoMatchingRule e) {
                mapped = "-";
            }
            System.out.println(encoded(name) + " " + mapped);
        }
    }

    private static String encoded(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
