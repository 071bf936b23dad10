import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Avg;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

import kafka.utils.QuotaUtils;

/**
 * What Kafka's own sensors and QuotaUtils make of a history.
 *
 * <p>A line on stdin: kind (rate, bounded, tokens, average), samples, seconds a sample, quota, then pairs of time in ms
 * and value; a value that begins with "!" is recorded without a check, as fetches that are throttled are unrecorded. The
 * answer is a line: for each pair the throttle time in ms, and behind a colon the bits of what is measured at the end.
 */
public class QuotaOracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        String line;
        int number = 0;
        while ((line = lines.readLine()) != null) {
            System.out.println(answer(line.split(" "), "s" + number++));
            System.out.flush();
        }
    }

    private static String answer(String[] words, String name) {
        String kind = words[0];
        int samples = Integer.parseInt(words[1]);
        int seconds = Integer.parseInt(words[2]);
        MetricConfig config = new MetricConfig().samples(samples).timeWindow(seconds, TimeUnit.SECONDS)
            .quota(Quota.upperBound(Double.parseDouble(words[3])));
        if (kind.equals("average"))
            config = new MetricConfig().samples(samples).timeWindow(seconds, TimeUnit.SECONDS);
        Metrics metrics = new Metrics();
        Sensor sensor = metrics.sensor(name);
        MetricName metricName = metrics.metricName(name, "oracle");
        if (kind.equals("tokens"))
            sensor.add(metricName, new TokenBucket(), config);
        else if (kind.equals("average"))
            sensor.add(metricName, new Avg(), config);
        else
            sensor.add(metricName, new Rate(), config);
        KafkaMetric metric = metrics.metric(metricName);
        StringBuilder answer = new StringBuilder();
        for (int i = 4; i < words.length; i += 2) {
            long timeMs = Long.parseLong(words[i]);
            boolean isChecked = !words[i + 1].startsWith("!");
            double value = Double.parseDouble(isChecked ? words[i + 1] : words[i + 1].substring(1));
            long throttleMs = 0;
            try {
                sensor.record(value, timeMs, isChecked);
            } catch (QuotaViolationException e) {
                if (kind.equals("tokens"))
                    throttleMs = Math.round(-e.value() / e.bound() * 1000);
                else if (kind.equals("bounded"))
                    throttleMs = QuotaUtils.boundedThrottleTime(e, seconds * 1000L, timeMs);
                else
                    throttleMs = QuotaUtils.throttleTime(e, timeMs);
            }
            answer.append(throttleMs).append(' ');
            if (i + 2 >= words.length)
                answer.append(": ").append(Long.toHexString(
                    Double.doubleToLongBits(metric.measurable().measure(metric.config(), timeMs))));
        }
        metrics.close();
        return answer.toString();
    }
}
