// Creates a topic and produces to it with kafkajs; prints the topic's end offsets.
// Arguments: bootstrap topic count codec[,codec...]; message n goes to partition n % 3.
import kafkajs from "kafkajs";

const { Kafka, CompressionTypes, logLevel } = kafkajs;
const [bootstrap, topic, count, codecs] = process.argv.slice(2);
const kafka = new Kafka({ clientId: "node", brokers: [bootstrap], logLevel: logLevel.ERROR });

const admin = kafka.admin();
await admin.connect();
await admin.createTopics({ topics: [{ topic, numPartitions: 3, replicationFactor: 1 }], waitForLeaders: true });

const types = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP };
for (const codec of codecs.split(",")) {
  const producer = kafka.producer({ idempotent: codec === "gzip", maxInFlightRequests: 1 });
  await producer.connect();
  const messages = Array.from({ length: Number(count) }, (_, n) => ({
    key: `key-${n}`, value: `${codec}-${n}`, partition: n % 3, headers: { codec },
  }));
  await producer.send({ topic, messages, acks: -1, compression: types[codec] });
  await producer.disconnect();
}

for (const { partition, low, high } of await admin.fetchTopicOffsets(topic)) {
  console.log(partition, low, high);
}
await admin.disconnect();
