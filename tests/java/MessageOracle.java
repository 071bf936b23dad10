import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Reads, rewrites and invents messages with the classes that Kafka generates from its own declarations.
 *
 * <p>Commands on standard input, one a line:
 * <pre>
 * range KEY request|response                    answers: lowest and highest version, or `unsupported`
 * rewrite KEY request|response VERSION HEX      decodes and encodes again; answers the bytes, or `error CLASS MESSAGE`
 * invent KEY request|response VERSION SEED      answers the bytes of a random message, made from Kafka's schema
 * </pre>
 * Bytes are in hex after an `x`, in commands and answers.
 */
public final class MessageOracle {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split(" ")));
        }
        out.flush();
    }

    private static String answer(String[] words) {
        try {
            ApiMessageType api = ApiMessageType.fromApiKey(Short.parseShort(words[1]));
            boolean request = words[2].equals("request");
            if (words[0].equals("range")) {
                ApiMessage empty = request ? api.newRequest() : api.newResponse();
                return empty.lowestSupportedVersion() + " " + empty.highestSupportedVersion();
            }
            short version = Short.parseShort(words[3]);
            byte[] bytes = words[0].equals("rewrite")
                ? HEX.parseHex(words[4].substring(1))
                : invent(api, request, version, Long.parseLong(words[4]));
            return "x" + HEX.formatHex(rewrite(request ? api.newRequest() : api.newResponse(), version, bytes));
        } catch (org.apache.kafka.common.errors.UnsupportedVersionException problem) {
            return words[0].equals("range") ? "unsupported" : "error " + problem;
        } catch (RuntimeException problem) {
            return "error " + problem;
        }
    }

    private static byte[] rewrite(ApiMessage message, short version, byte[] bytes) {
        ByteBuffer input = ByteBuffer.wrap(bytes);
        message.read(new ByteBufferAccessor(input), version);
        if (input.hasRemaining()) {
            throw new IllegalStateException(input.remaining() + " bytes are left");
        }
        var cache = new ObjectSerializationCache();
        ByteBuffer output = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(output), cache, version);
        return output.array();
    }

    private static byte[] invent(ApiMessageType api, boolean request, short version, long seed) {
        Schema schema = (request ? api.requestSchemas() : api.responseSchemas())[version];
        Struct struct = struct(schema, new Random(seed));
        ByteBuffer buffer = ByteBuffer.allocate(struct.sizeOf());
        struct.writeTo(buffer);
        return buffer.array();
    }

    private static Struct struct(Schema schema, Random random) {
        Struct struct = new Struct(schema);
        for (BoundField field : schema.fields()) {
            struct.set(field, value(field.def.type, random));
        }
        return struct;
    }

    private static Object value(Type type, Random random) {
        if (type instanceof TaggedFields section) {
            Map<Integer, Object> fields = new TreeMap<>();
            for (Map.Entry<Integer, Field> entry : fieldsOf(section).entrySet()) {
                if (random.nextInt(4) > 0) {
                    fields.put(entry.getKey(), value(entry.getValue().type, random));
                }
            }
            return fields;
        }
        if (type.isNullable() && random.nextInt(4) == 0) {
            return null;
        }
        if (type.isArray()) {
            Object[] elements = new Object[random.nextInt(4)];
            for (int index = 0; index < elements.length; index++) {
                elements[index] = value(type.arrayElementType().orElseThrow(), random);
            }
            return elements;
        }
        if (type instanceof Schema schema) {
            return struct(schema, random);
        }
        return switch (type.toString()) {
            case "BOOLEAN" -> random.nextBoolean();
            case "INT8" -> (byte) random.nextInt();
            case "INT16" -> (short) random.nextInt();
            case "UINT16" -> random.nextInt(1 << 16);
            case "INT32" -> random.nextInt();
            case "UINT32" -> random.nextInt() & 0xffffffffL;
            case "INT64" -> random.nextLong();
            case "FLOAT64" -> random.nextGaussian();
            case "UUID" -> new Uuid(random.nextLong(), random.nextLong());
            case "STRING", "COMPACT_STRING", "NULLABLE_STRING", "COMPACT_NULLABLE_STRING" -> text(random);
            case "RECORDS", "COMPACT_RECORDS", "NULLABLE_RECORDS", "COMPACT_NULLABLE_RECORDS" ->
                records(bytes(random));
            case "BYTES", "COMPACT_BYTES", "NULLABLE_BYTES", "COMPACT_NULLABLE_BYTES" -> bytes(random);
            default -> throw new IllegalArgumentException("no values for the type " + type);
        };
    }

    /** The accessor came after 3.9. */
    @SuppressWarnings("unchecked")
    private static Map<Integer, Field> fieldsOf(TaggedFields section) {
        try {
            var field = TaggedFields.class.getDeclaredField("fields");
            field.setAccessible(true);
            return (Map<Integer, Field>) field.get(section);
        } catch (ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

    /** The class moved to another package in 4.x. */
    private static Object records(ByteBuffer bytes) {
        ReflectiveOperationException last = null;
        for (String place : new String[] {"record.MemoryRecords", "record.internal.MemoryRecords"}) {
            try {
                Class<?> records = Class.forName("org.apache.kafka.common." + place);
                return records.getMethod("readableRecords", ByteBuffer.class).invoke(null, bytes);
            } catch (ReflectiveOperationException problem) {
                last = problem;
            }
        }
        throw new IllegalStateException(last);
    }

    private static String text(Random random) {
        return random.ints(random.nextInt(150), 0x20, 0x2ff).collect(
            StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append).toString();
    }

    private static ByteBuffer bytes(Random random) {
        byte[] bytes = new byte[random.nextInt(200)];
        random.nextBytes(bytes);
        return ByteBuffer.wrap(bytes);
    }
}
