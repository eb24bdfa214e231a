package store;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;

/**
 * A topic's key {id: long} as a Long and back, to the byte. A foreign-key join sends its subscriptions to the
 * partition of the key's bytes: with other bytes it finds nothing, and says nothing.
 */
public final class IdSerde implements Serde<Long> {
  private static final int HEADER = 5; // Confluent's wire format: a zero byte and the schema's id

  private final int schemaId;

  public IdSerde(int schemaId) {
    this.schemaId = schemaId;
  }

  /** Asks the registry for the schema of the topic's keys. It never changes. */
  public static IdSerde of(String registry, String topic) throws IOException, InterruptedException {
    URI uri = URI.create(registry + "/subjects/" + topic + "-key/versions/latest");
    String answer = HttpClient.newHttpClient()
        .send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString()).body();
    Matcher id = Pattern.compile("\"id\"\\s*:\\s*(\\d+)").matcher(answer);
    if (!id.find()) {
      throw new IOException(uri + " has no schema id: " + answer);
    }
    return new IdSerde(Integer.parseInt(id.group(1)));
  }

  @Override
  public Serializer<Long> serializer() {
    return (topic, id) -> {
      if (id == null) {
        return null;
      }
      ByteBuffer bytes = ByteBuffer.allocate(HEADER + 10).put((byte) 0).putInt(schemaId);
      long rest = id << 1 ^ id >> 63; // Avro's long: zigzag, then seven bits a byte
      while ((rest & ~0x7FL) != 0) {
        bytes.put((byte) (rest & 0x7F | 0x80));
        rest >>>= 7;
      }
      return Arrays.copyOf(bytes.put((byte) rest).array(), bytes.position());
    };
  }

  @Override
  public Deserializer<Long> deserializer() {
    return (topic, bytes) -> {
      if (bytes == null) {
        return null;
      }
      if (bytes.length <= HEADER || ByteBuffer.wrap(bytes).getInt(1) != schemaId) {
        throw new SerializationException(topic + ": expected a key of schema " + schemaId);
      }
      long rest = 0;
      for (int i = HEADER; i < bytes.length; i++) {
        rest |= (bytes[i] & 0x7FL) << 7 * (i - HEADER);
      }
      return rest >>> 1 ^ -(rest & 1);
    };
  }
}
