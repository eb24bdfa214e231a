import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;

/**
 * Runs the statements of a file, which blank lines part, in a cluster of its own, as sql-client.sh -f
 * does in a larger one. It ends when the job of the last one does: never, unless that fails. If the file
 * sets a folder of checkpoints, the job begins with the newest checkpoint in it.
 */
public final class RunSql {
  private static final Pattern SETTING = Pattern.compile("(?m)^SET '([^']*)' = '([^']*)'");

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
      List<MatchResult> settings = SETTING.matcher(statement).results().toList();
      if (!settings.isEmpty()) {
        settings.forEach(s -> tables.getConfig().set(s.group(1), s.group(2)));
        resume(tables);
      } else if (!statement.isBlank()) {
        last = tables.executeSql(statement + ";");
      }
    }
    last.await();
  }

  private static void resume(TableEnvironment tables) throws IOException {
    String folder = tables.getConfig().get(CheckpointingOptions.CHECKPOINTS_DIRECTORY);
    if (folder == null || !Files.exists(Path.of(URI.create(folder)))) {
      return;
    }
    try (Stream<Path> files = Files.walk(Path.of(URI.create(folder)))) {
      Optional<Path> newest = files.filter(f -> f.endsWith("_metadata"))
          .max(Comparator.comparing(f -> f.toFile().lastModified()));
      newest.ifPresent(f -> {
        System.out.println("begins with the checkpoint " + f.getParent());
        tables.getConfig().set("execution.state-recovery.path", f.getParent().toUri().toString());
      });
    }
  }
}
