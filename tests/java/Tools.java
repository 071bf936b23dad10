import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;

import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command line tools one after the other in one JVM: most of a tool's seconds are the JVM's start.
 *
 * <p>A line on stdin is a command, its words separated by tabs, the first the tool's class. The answer is a line with
 * the exit code and the number of bytes that follow: what the tool wrote to stdout and stderr.
 */
public class Tools {
    private static class Exited extends RuntimeException {
    }

    /** What the running tool exited with first: some catch what an exit throws, and exit once more. */
    private static Integer exitCode;

    /** How much it had written by then: what comes later tells of our exception. */
    private static int sizeAtExit;

    // One for all commands: Scala's println keeps the stream that it finds first.
    private static final ByteArrayOutputStream written = new ByteArrayOutputStream();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        PrintStream output = new PrintStream(written, true, "UTF-8");
        System.setOut(output);
        System.setErr(output);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        String line;
        while ((line = commands.readLine()) != null) {
            written.reset();
            int code = run(line.split("\t", -1));
            output.flush();
            int size = exitCode == null ? written.size() : sizeAtExit;
            answers.println(code + " " + size);
            answers.write(written.toByteArray(), 0, size);
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static void exit(int code) {
        if (exitCode == null) {
            exitCode = code;
            System.out.flush();
            sizeAtExit = written.size();
        }
        throw new Exited();
    }

    private static int run(String[] words) throws Exception {
        exitCode = null;
        try {
            Class.forName(words[0]).getMethod("main", String[].class)
                .invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
        } catch (InvocationTargetException thrown) {
            if (exitCode == null) {
                thrown.getCause().printStackTrace();
                return 1;
            }
        }
        return exitCode == null ? 0 : exitCode;
    }
}
