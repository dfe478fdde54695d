// Writes and reads record batches with Apache Kafka's own Java client. Run with kafka-clients and its codecs on the class
// path:
//
//   java -cp "$jars/*" Batches.java golden FOLDER   writes FOLDER/java-*.bin from records.txt and large.txt beside this file
//   java -cp "$jars/*" Batches.java read FILE...    prints every record, after checking every batch as a consumer does
//
// A record is a line: offset, timestamp, key, value, headers. See README.md.

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

public class Batches {
    static final long BASE_OFFSET = 1000;
    static final long APPEND_TIME = 1_800_000_000_000L;

    public static void main(String[] args) throws IOException {
        switch (args.length == 0 ? "" : args[0]) {
            case "golden" -> golden(Path.of(args[1]));
            case "read" -> {
                for (String file : Arrays.copyOfRange(args, 1, args.length)) read(Path.of(file));
            }
            default -> throw new IllegalArgumentException("golden FOLDER, or read FILE...");
        }
    }

    static void golden(Path folder) throws IOException {
        List<Line> records = lines(folder.resolve("records.txt"));
        List<Line> large = lines(folder.resolve("large.txt"));
        for (byte magic = 0; magic <= 2; magic++) {
            for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
                if (codec.equals("zstd") && magic < 2) continue;
                TimestampType type = magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME;
                String name = "java-v" + magic + "-" + codec;
                write(folder.resolve(name + ".bin"), magic, codec, type, records);
                if (!codec.equals("none")) write(folder.resolve(name + "-large.bin"), magic, codec, type, large);
            }
            if (magic > 0) {
                Path file = folder.resolve("java-v" + magic + "-gzip-append-time.bin");
                write(file, magic, "gzip", TimestampType.LOG_APPEND_TIME, records);
            }
        }
        ByteArrayOutputStream markers = new ByteArrayOutputStream();
        long offset = BASE_OFFSET;
        for (ControlRecordType kind : List.of(ControlRecordType.COMMIT, ControlRecordType.ABORT)) {
            EndTransactionMarker marker = new EndTransactionMarker(kind, 7);
            MemoryRecords batch =
                MemoryRecords.withEndTransactionMarker(offset++, 1_700_000_000_000L, 3, 4000, (short) 5, marker);
            markers.write(bytes(batch.buffer()));
        }
        Files.write(folder.resolve("java-control.bin"), markers.toByteArray());
    }

    static void write(Path file, byte magic, String codec, TimestampType type, List<Line> lines) throws IOException {
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1 << 20), magic, Compression.of(codec).build(), type, BASE_OFFSET, APPEND_TIME);
        for (Line line : lines) {
            long timestamp = magic == 0 ? RecordBatch.NO_TIMESTAMP : line.timestamp;
            Header[] headers = magic < 2 ? Record.EMPTY_HEADERS : line.headers;
            builder.append(timestamp, line.key, line.value, headers);
        }
        Files.write(file, bytes(builder.build().buffer()));
    }

    static void read(Path file) throws IOException {
        System.out.println("# " + file.getFileName().toString().replaceFirst("\\.bin$", ""));
        for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file))).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                record.ensureValid();
                String headers = Stream.of(record.headers())
                    .map(header -> format(header.key().getBytes(StandardCharsets.UTF_8)) + "=" + format(header.value()))
                    .collect(Collectors.joining(","));
                System.out.println(
                    record.offset() + " " + record.timestamp() + " " + format(bytes(record.key())) + " "
                        + format(bytes(record.value())) + " " + (headers.isEmpty() ? "." : headers));
            }
        }
    }

    record Line(long timestamp, byte[] key, byte[] value, Header[] headers) {}

    static List<Line> lines(Path file) throws IOException {
        List<Line> lines = new ArrayList<>();
        for (String line : Files.readAllLines(file)) {
            String[] fields = line.split(" ");
            Header[] headers = Stream.of(fields[3].equals(".") ? new String[0] : fields[3].split(","))
                .map(header -> header.split("="))
                .map(header -> new RecordHeader(new String(parse(header[0]), StandardCharsets.UTF_8), parse(header[1])))
                .toArray(Header[]::new);
            lines.add(new Line(Long.parseLong(fields[0]), parse(fields[1]), parse(fields[2]), headers));
        }
        return lines;
    }

    static byte[] parse(String field) {
        if (field.equals("-")) return null;
        if (field.startsWith("g")) return generated(Integer.parseInt(field.substring(1)));
        byte[] bytes = new byte[field.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(field.substring(1 + 2 * i, 3 + 2 * i), 16);
        }
        return bytes;
    }

    static String format(byte[] bytes) {
        if (bytes == null) return "-";
        if (bytes.length >= 30 && Arrays.equals(bytes, generated(bytes.length))) return "g" + bytes.length;
        StringBuilder text = new StringBuilder("x");
        for (byte b : bytes) text.append(String.format("%02x", b));
        return text.toString();
    }

    static byte[] generated(int length) {
        byte[] bytes = new byte[length];
        for (long i = 0; i < length; i++) bytes[(int) i] = (byte) ('a' + i * i / 100 % 26);
        return bytes;
    }

    static byte[] bytes(ByteBuffer buffer) {
        if (buffer == null) return null;
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }
}
