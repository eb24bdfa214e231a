package store;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.apicurio.registry.serde.avro.AvroKafkaDeserializer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.avro.Conversions;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** Rows as JSON: what stores and the topics written here hold. Money and times are text, exact. */
final class Rows {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Conversions.DecimalConversion DECIMAL = new Conversions.DecimalConversion();

  private Rows() {}

  static Serde<ObjectNode> json() {
    return Serdes.serdeFrom(
        (topic, row) -> row == null ? null : row.toString().getBytes(UTF_8),
        (topic, bytes) -> bytes == null ? null : parse(bytes));
  }

  private static ObjectNode parse(byte[] bytes) {
    try {
      return (ObjectNode) JSON.readTree(bytes);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** What storestream writes: Avro in Confluent's wire format, read by Apicurio's deserializer. */
  static Serde<ObjectNode> avro(String apicurio) {
    AvroKafkaDeserializer<GenericRecord> avro = new AvroKafkaDeserializer<>();
    // contentId is what Apicurio gives out as the id of a schema at Confluent's paths.
    avro.configure(Map.of("apicurio.registry.url", apicurio, "apicurio.registry.as-confluent", true,
        "apicurio.registry.use-id", "contentId"), false);
    Deserializer<ObjectNode> rows =
        (topic, bytes) -> bytes == null ? null : row(avro.deserialize(topic, bytes));
    return Serdes.serdeFrom((topic, row) -> {
      throw new UnsupportedOperationException("nothing is written in storestream's schemas: " + topic);
    }, rows);
  }

  private static ObjectNode row(GenericRecord record) {
    Map<String, Object> row = new LinkedHashMap<>();
    for (Schema.Field field : record.getSchema().getFields()) {
      row.put(field.name(), plain(record.get(field.pos()), field.schema()));
    }
    return JSON.valueToTree(row);
  }

  private static Object plain(Object value, Schema schema) {
    if (value == null) {
      return null;
    }
    Schema type = schema.isUnion() ? schema.getTypes().get(1) : schema; // ["null", type]
    if (type.getLogicalType() instanceof LogicalTypes.Decimal decimal) {
      return DECIMAL.fromBytes(((ByteBuffer) value).duplicate(), type, decimal).toPlainString();
    }
    if (type.getLogicalType() instanceof LogicalTypes.TimestampMillis) {
      return Instant.ofEpochMilli((Long) value).toString();
    }
    return value instanceof CharSequence ? value.toString() : value;
  }
}
