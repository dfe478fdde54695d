import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Runs {@code ottla broker} for a test. Copy this file beside your tests; ottla is on the PATH, or OTTLA names the program. */
public final class OttlaBroker implements AutoCloseable {
    private static final long TIMEOUT_MS = 30_000;

    private final Process process;
    private final Map<String, String> properties = new HashMap<>();
    private final StringBuilder errors = new StringBuilder();
    private final Thread reader;
    private final Thread errorReader;
    private boolean hasEnded;

    private OttlaBroker(List<String> command) throws IOException {
        process = new ProcessBuilder(command).start();
        reader = start(process.inputReader(), this::put, true);
        errorReader = start(process.errorReader(), this::putError, false);
    }

    /** Starts a broker on a free port with options of {@code ottla broker}, and waits until it answers. */
    public static OttlaBroker start(String... options) throws IOException, InterruptedException {
        String program = System.getenv("OTTLA");
        List<String> command = new ArrayList<>(List.of(program == null ? "ottla" : program, "broker", "--port", "0"));
        command.addAll(List.of(options));
        OttlaBroker broker = new OttlaBroker(command);
        try {
            broker.bootstrapServers();
            return broker;
        } catch (RuntimeException | InterruptedException error) {
            broker.close();
            throw error;
        }
    }

    /** Returns the address for clients. */
    public String bootstrapServers() throws InterruptedException {
        return property("bootstrap.servers");
    }

    /** Returns a property that the broker prints, such as control or sasl.password; waits until it is there. */
    public synchronized String property(String name) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(TIMEOUT_MS);
        while (!properties.containsKey(name)) {
            long left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
            if (hasEnded || left <= 0) {
                throw new IllegalStateException("ottla broker does not print " + name + ": " + errors);
            }
            wait(left);
        }
        return properties.get(name);
    }

    /** Ends the broker, and waits for its end. */
    @Override
    public void close() throws InterruptedException {
        process.destroy();
        if (!process.waitFor(TIMEOUT_MS, TimeUnit.MILLISECONDS)) {
            process.destroyForcibly().waitFor();
        }
        reader.join();
        errorReader.join();
    }

    private synchronized void put(String line) {
        int at = line.indexOf('=');
        if (at > 0) {
            properties.putIfAbsent(line.substring(0, at), line.substring(at + 1));
            notifyAll();
        }
    }

    private synchronized void putError(String line) {
        errors.append(line).append('\n');
    }

    private synchronized void end() {
        hasEnded = true;
        notifyAll();
    }

    private Thread start(BufferedReader lines, java.util.function.Consumer<String> each, boolean isOutput) {
        Thread thread = new Thread(() -> {
            try (lines) {
                lines.lines().forEach(each);
            } catch (IOException | UncheckedIOException closed) {
                // The process has ended.
            } finally {
                if (isOutput) {
                    end();
                }
            }
        }, "ottla broker");
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}
