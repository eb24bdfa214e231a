import java.math.BigDecimal;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Types.NestedField;

/**
 * Prints the rows of the tables in the database "store" of a warehouse, by Iceberg's own reader, without
 * Flink: for each row its table, a tab, and the row as JSON. Money and times are text.
 */
public final class ReadIceberg {
  public static void main(String[] args) throws Exception {
    ObjectMapper json = new ObjectMapper();
    try (HadoopCatalog catalog = new HadoopCatalog(new Configuration(), args[0])) {
      for (TableIdentifier name : catalog.listTables(Namespace.of("store"))) {
        Table table = catalog.loadTable(name);
        try (CloseableIterable<Record> rows = IcebergGenerics.read(table).build()) {
          for (Record row : rows) {
            Map<String, Object> shown = new LinkedHashMap<>();
            for (NestedField field : table.schema().columns()) {
              shown.put(field.name(), show(row.getField(field.name())));
            }
            System.out.println(name.name() + "\t" + json.writeValueAsString(shown));
          }
        }
      }
    }
  }

  private static Object show(Object value) {
    if (value instanceof BigDecimal money) {
      return money.toPlainString();
    }
    if (value instanceof LocalDateTime time) {
      return time.format(DateTimeFormatter.ISO_LOCAL_DATE_TIME);
    }
    return value;
  }
}
