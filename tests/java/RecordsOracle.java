import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.Time;

/**
 * Writes, reads and down-converts record batches with Kafka's own classes (kafka-clients 3.9).
 *
 * <p>Commands on standard input, one a line, fields parted by blanks; bytes are hex after an `x`, null is `n`:
 * <pre>
 * write FILE magic codec timestampType baseOffset logAppendTime producerId epoch sequence transactional leaderEpoch deleteHorizon
 *   r offset timestamp key value [headerKey headerValue]...     (as many as there are)
 *   end
 * marker FILE baseOffset timestamp producerId epoch coordinatorEpoch leaderEpoch commit|abort
 * read FILE          prints a `batch` line, then an `r` line for each record; `error CLASS` where Kafka refuses
 * down FILE FILE magic firstOffset
 * </pre>
 */
public final class RecordsOracle {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "write" -> write(words, in);
                case "marker" -> marker(words);
                case "read" -> read(words[1]);
                case "down" -> down(words);
                default -> throw new IllegalArgumentException(line);
            }
        }
    }

    private static void write(String[] words, BufferedReader in) throws Exception {
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            new ByteBufferOutputStream(1024),
            Byte.parseByte(words[2]),
            Compression.of(CompressionType.forName(words[3])).build(),
            TimestampType.forName(words[4]),
            Long.parseLong(words[5]),
            Long.parseLong(words[6]),
            Long.parseLong(words[7]),
            Short.parseShort(words[8]),
            Integer.parseInt(words[9]),
            Boolean.parseBoolean(words[10]),
            false,
            Integer.parseInt(words[11]),
            Integer.MAX_VALUE,
            Long.parseLong(words[12]));
        for (String line = in.readLine(); !line.equals("end"); line = in.readLine()) {
            String[] fields = line.split(" ");
            Header[] headers = new Header[(fields.length - 5) / 2];
            for (int i = 0; i < headers.length; i++) {
                headers[i] = new RecordHeader(new String(bytes(fields[5 + 2 * i]), "UTF-8"), bytes(fields[6 + 2 * i]));
            }
            builder.appendWithOffset(
                Long.parseLong(fields[1]),
                new SimpleRecord(Long.parseLong(fields[2]), bytes(fields[3]), bytes(fields[4]), headers));
        }
        save(words[1], builder.build().buffer());
    }

    private static void marker(String[] words) throws Exception {
        ControlRecordType type = words[8].equals("commit") ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(
            Long.parseLong(words[2]),
            Long.parseLong(words[3]),
            Integer.parseInt(words[7]),
            Long.parseLong(words[4]),
            Short.parseShort(words[5]),
            new EndTransactionMarker(type, Integer.parseInt(words[6])));
        save(words[1], records.buffer());
    }

    private static void read(String file) throws Exception {
        StringBuilder out = new StringBuilder();
        try {
            for (MutableRecordBatch batch : MemoryRecords.readableRecords(load(file)).batches()) {
                batch.ensureValid();
                describe(batch, out);
            }
        } catch (RuntimeException e) {
            out.append("error ").append(e.getClass().getSimpleName()).append('\n');
        }
        System.out.print(out.append("end\n"));
    }

    private static void describe(RecordBatch batch, StringBuilder out) {
        out.append("batch ").append(batch.magic())
            .append(' ').append(batch.lastOffset())
            .append(' ').append(batch.compressionType().name)
            .append(' ').append(batch.timestampType().name)
            .append(' ').append(batch.maxTimestamp())
            .append(' ').append(batch.producerId())
            .append(' ').append(batch.producerEpoch())
            .append(' ').append(batch.baseSequence())
            .append(' ').append(batch.lastSequence())
            .append(' ').append(batch.isTransactional())
            .append(' ').append(batch.isControlBatch())
            .append(' ').append(batch.partitionLeaderEpoch())
            .append(' ').append(batch.deleteHorizonMs().orElse(-1L))
            .append('\n');
        for (Record record : batch) {
            out.append("r ").append(record.offset()).append(' ').append(record.timestamp());
            out.append(' ').append(text(record.key())).append(' ').append(text(record.value()));
            for (Header header : record.headers()) {
                out.append(' ').append(text(ByteBuffer.wrap(header.key().getBytes(java.nio.charset.StandardCharsets.UTF_8))));
                out.append(' ').append(text(header.value() == null ? null : ByteBuffer.wrap(header.value())));
            }
            out.append('\n');
        }
    }

    private static void down(String[] words) throws Exception {
        save(words[2], MemoryRecords.readableRecords(load(words[1]))
            .downConvert(Byte.parseByte(words[3]), Long.parseLong(words[4]), Time.SYSTEM).records().buffer());
    }

    private static byte[] bytes(String word) {
        return word.equals("n") ? null : HEX.parseHex(word.substring(1));
    }

    private static String text(ByteBuffer buffer) {
        if (buffer == null) {
            return "n";
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return "x" + HEX.formatHex(bytes);
    }

    private static ByteBuffer load(String file) throws Exception {
        return ByteBuffer.wrap(Files.readAllBytes(Path.of(file)));
    }

    private static void save(String file, ByteBuffer buffer) throws Exception {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        Files.write(Path.of(file), bytes);
    }
}
