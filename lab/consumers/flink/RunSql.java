import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;

/**
 * Runs the statements of a file, which blank lines part, in a cluster of its own, as sql-client.sh -f
 * does in a larger one. It ends when the job of the last one does: never, unless that fails.
 */
public final class RunSql {
  public static void main(String[] args) throws Exception {
    Configuration config = new Configuration();
    config.setString("parallelism.default", "1");
    config.setString("taskmanager.memory.network.min", "32mb");
    config.setString("taskmanager.memory.network.max", "32mb");
    config.setString("rest.port", "0");
    TableEnvironment tables = TableEnvironment.create(
        EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(config).build());
    TableResult last = null;
    for (String statement : Files.readString(Path.of(args[0])).split(";\n(?=\n|$)")) {
      if (!statement.isBlank()) {
        last = tables.executeSql(statement + ";");
      }
    }
    last.await();
  }
}
