package store;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Keeps json.item_details: each order item with its order, that order's user, and its product. And the rows
 * as they are: json.orders and so on. All of them have the id as text for a key, and tombstones.
 */
public final class ItemDetails {
  private static final String BROKERS = env("BROKERS", "127.0.0.1:9092");
  private static final String REGISTRY = env("REGISTRY", "http://127.0.0.1:8081/apis/ccompat/v7");
  private static final String APICURIO = REGISTRY.replace("/apis/ccompat/v7", "/apis/registry/v2");
  private static final List<String> RESOURCES =
      List.of("orders", "order_items", "products", "users", "shipments");

  private final StreamsBuilder builder = new StreamsBuilder();
  private final Serde<ObjectNode> json = Rows.json();
  private final Map<String, LongAdder> written = new ConcurrentSkipListMap<>();

  public static void main(String[] args) throws Exception {
    createTopics();
    Properties config = new Properties();
    config.put(StreamsConfig.APPLICATION_ID_CONFIG, "example-streams");
    config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, BROKERS);
    config.put(StreamsConfig.STATE_DIR_CONFIG, env("STATE", "state"));
    // Without it rows come too whose transaction was aborted. Java reads them by default.
    config.put(StreamsConfig.consumerPrefix("isolation.level"), "read_committed");
    ItemDetails details = new ItemDetails();
    details.build();
    KafkaStreams streams = new KafkaStreams(details.builder.build(), config);
    Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
    CountDownLatch failed = new CountDownLatch(1);
    streams.setStateListener((now, before) -> {
      if (now == KafkaStreams.State.ERROR) {
        failed.countDown();
      }
    });
    streams.start();
    while (!failed.await(5, TimeUnit.SECONDS)) {
      System.out.println("written: " + details.written);
    }
    System.exit(1);
  }

  private void build() throws Exception {
    KTable<Long, ObjectNode> orders = table("orders");
    KTable<Long, ObjectNode> items = table("order_items");
    KTable<Long, ObjectNode> products = table("products");
    KTable<Long, ObjectNode> users = table("users");
    table("shipments");
    KTable<Long, ObjectNode> withUser = orders.leftJoin(users, order -> reference(order, "user_id"),
        (order, user) -> with(order, "user", user), stored("orders"));
    KTable<Long, ObjectNode> withOrder = items.leftJoin(withUser, item -> reference(item, "order_id"),
        (item, order) -> with(item, "order", order), stored("order_items"));
    write("item_details", withOrder.leftJoin(products, item -> reference(item, "product_id"),
        (item, product) -> with(item, "product", product), stored("order_items")));
  }

  /** A resource's rows. A tombstone deletes one. */
  private KTable<Long, ObjectNode> table(String resource) throws Exception {
    String topic = "store." + resource;
    KTable<Long, ObjectNode> table = builder
        .stream(topic, Consumed.with(IdSerde.of(REGISTRY, topic), Rows.avro(APICURIO)))
        .toTable(stored(resource)); // stores hold JSON: builder.table would write them with the topic's serde
    write(resource, table);
    return table;
  }

  /** A store under the keys of a resource, whose bytes stay those of its topic. */
  private Materialized<Long, ObjectNode, KeyValueStore<Bytes, byte[]>> stored(String resource)
      throws Exception {
    return Materialized.with(IdSerde.of(REGISTRY, "store." + resource), json);
  }

  private void write(String name, KTable<Long, ObjectNode> table) {
    LongAdder records = written.computeIfAbsent(name, none -> new LongAdder());
    table.toStream().peek((id, row) -> records.increment())
        .map((id, row) -> KeyValue.pair(id.toString(), row))
        .to("json." + name, Produced.with(Serdes.String(), json));
  }

  private static Long reference(ObjectNode row, String field) {
    return row.get(field).isNull() ? null : row.get(field).longValue();
  }

  private static ObjectNode with(ObjectNode row, String name, ObjectNode other) {
    return row.deepCopy().set(name, other);
  }

  /** Compacted: records inherit the rows' updated_at, by which retention would delete old ones at once. */
  private static void createTopics() throws ExecutionException, InterruptedException {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", BROKERS))) {
      for (String name : Stream.concat(RESOURCES.stream(), Stream.of("item_details")).toList()) {
        NewTopic topic = new NewTopic("json." + name, Optional.of(6), Optional.empty())
            .configs(Map.of("cleanup.policy", "compact"));
        try {
          admin.createTopics(List.of(topic)).all().get();
        } catch (ExecutionException e) {
          if (!(e.getCause() instanceof TopicExistsException)) {
            throw e;
          }
        }
      }
    }
  }

  private static String env(String name, String otherwise) {
    return System.getenv().getOrDefault(name, otherwise);
  }
}
