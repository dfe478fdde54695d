import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;
import org.apache.kafka.shaded.io.opentelemetry.proto.common.v1.KeyValue;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.Metric;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.NumberDataPoint;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ResourceMetrics;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ScopeMetrics;

/** A metrics plugin of a broker: prints the metrics that clients push, decoded with Kafka's own classes. */
public class MetricsReceiver implements MetricsReporter, ClientTelemetry, ClientTelemetryReceiver {
    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return this;
    }

    @Override
    public synchronized void exportMetrics(AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        String client = "METRICS " + context.clientId();
        System.out.println(client + " push " + payload.clientInstanceId() + " terminating=" + payload.isTerminating()
                + " type=" + payload.contentType());
        try {
            for (ResourceMetrics resource : MetricsData.parseFrom(payload.data()).getResourceMetricsList()) {
                for (KeyValue label : resource.getResource().getAttributesList()) {
                    System.out.println(client + " label " + label.getKey() + "=" + label.getValue().getStringValue());
                }
                for (ScopeMetrics scope : resource.getScopeMetricsList()) {
                    System.out.println(client + " scope " + scope.getScope().getName());
                    scope.getMetricsList().forEach(metric -> print(client, metric));
                }
            }
        } catch (Exception error) {
            System.out.println(client + " ERROR " + error);
        }
        System.out.flush();
    }

    private static void print(String client, Metric metric) {
        boolean isSum = metric.hasSum();
        List<NumberDataPoint> points = isSum ? metric.getSum().getDataPointsList() : metric.getGauge().getDataPointsList();
        String kind = isSum
                ? metric.getSum().getAggregationTemporality() + (metric.getSum().getIsMonotonic() ? " monotonic" : "")
                : "GAUGE";
        for (NumberDataPoint point : points) {
            StringBuilder line = new StringBuilder(client + " " + metric.getName() + " " + kind + " ");
            line.append(point.hasAsInt() ? String.valueOf(point.getAsInt()) : String.valueOf(point.getAsDouble()));
            long millis = (point.getTimeUnixNano() - point.getStartTimeUnixNano()) / 1_000_000;
            boolean isNow = Math.abs(System.currentTimeMillis() - point.getTimeUnixNano() / 1_000_000) < 60_000;
            line.append(millis >= 0 && isNow ? "" : " at a wrong time");
            point.getAttributesList().forEach(
                    attribute -> line.append(" " + attribute.getKey() + "=" + attribute.getValue().getStringValue()));
            System.out.println(line);
        }
    }

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}

    @Override
    public void configure(Map<String, ?> configs) {}
}
