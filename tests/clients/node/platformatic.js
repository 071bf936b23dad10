// Creates a topic and produces to it with @platformatic/kafka; prints the topic's end offsets.
// Arguments: bootstrap topic count codec[,codec...]; message n goes to partition n % 3.
import { Admin, Consumer, ListOffsetTimestamps, Producer, stringSerializers } from "@platformatic/kafka";

const [bootstrap, topic, count, codecs] = process.argv.slice(2);
const base = { clientId: "node", bootstrapBrokers: [bootstrap] };

const admin = new Admin(base);
await admin.createTopics({ topics: [topic], partitions: 3, replicas: 1 });
await admin.close();

for (const codec of codecs.split(",")) {
  const producer = new Producer({ ...base, serializers: stringSerializers, compression: codec });
  const messages = Array.from({ length: Number(count) }, (_, n) => ({
    topic, key: `key-${n}`, value: `${codec}-${n}`, partition: n % 3, headers: { codec },
  }));
  await producer.send({ messages, acks: -1 });
  await producer.close();
}

const consumer = new Consumer({ ...base, groupId: "unused" });
const ends = await consumer.listOffsets({ topics: [topic], timestamp: ListOffsetTimestamps.LATEST });
ends.get(topic).forEach((end, partition) => console.log(partition, 0, Number(end)));
await consumer.close(true);
