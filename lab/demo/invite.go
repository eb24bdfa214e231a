package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/storestream/storestream/internal/standins/servers"
)

// invitation is a command that a user may try, and the effect that it shows. An empty shows continues the one
// before.
type invitation struct{ shows, command string }

// invitations are commands to try next, ready to be pasted.
func invitations(ctx context.Context, stream *stream, ports *ports, db *database, apache *servers.Kafka,
	registry string) []invitation {
	program, config := shortest(stream.path), " --config "+quote(stream.config)
	lastMonth := time.Now().UTC().AddDate(0, -1, 0).Format(time.DateOnly)
	broker := " -b " + ports.broker.address() + " "
	list := []invitation{
		{"the newest orders, decoded", program + " tail orders -n 5" + config},
		{"is everything up to date, and how far is each topic?", program + " watermark list" + config},
		{"are the topics the service, row by row?", program + " verify" + config},
		{"does it have all that it needs?", program + " check" + config},
		{"publish the orders of the last month once more, while everything goes on (it asks first)",
			program + " watermark reset orders --to " + lastMonth + config},
	}
	list = append(list, kcat(ctx, broker, registry)...)
	if apache != nil {
		list = append(list, invitation{"how far each group of consumers is, by Kafka's own tool (" +
			"docs/operations.md names others)", groups(apache)})
	}
	list = append(list, invitation{"the figures of the status page (http://" + ports.status.address() +
		"/) as JSON" + missing("curl", "curl"), "curl -s http://" + ports.status.address() + "/status.json"})
	list = append(list, invitation{
		"stop storestream (-9 kills it); the demo starts it again, and it resumes its work",
		fmt.Sprintf("kill %d", stream.Pid())})
	if db != nil {
		list = append(list, invitation{
			"stop PostgreSQL, and see what page, `check` and the log say; again starts it",
			fmt.Sprintf("kill -USR1 %d", os.Getpid()),
		})
	}
	if dsn := db.readerDSN(); dsn != "" {
		list = append(list, invitation{"the database as storestream sees it" + missing("psql", "postgresql-client"),
			"psql " + quote(dsn) + " -c 'select status, count(*) from orders group by 1'"},
			invitation{"as the administrator: make a row that cannot be published, a dead letter, and good again",
				change(db, "update orders set total_amount = 1e25, updated_at = now() where id = 7")},
			invitation{"", change(db, "update orders set total_amount = 49.5, updated_at = now() where id = 7")},
			invitation{"as the administrator: a new column, which `check` names",
				change(db, "alter table orders add channel text default 'web'")})
	}
	return append(list, invitation{"before the examples of --help and of the documents", "export PATH=" +
		quote(filepath.Dir(stream.path)) + ":$PATH STORESTREAM_CONFIG=" + quote(stream.config)})
}

// groups is the command that shows all groups by kafka-consumer-groups.sh.
func groups(apache *servers.Kafka) string {
	words := apache.Tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--describe",
		"--all-groups")
	for i := range words {
		words[i] = quote(words[i])
	}
	return strings.Join(words, " ")
}

// change is a command that changes the database as its administrator: the role that storestream reads with
// may not.
func change(db *database, statement string) string {
	return "psql " + quote(db.postgres.AdminDSN(databaseName)) + ` -c "` + statement + `"`
}

// kcat returns commands with kcat, which show the topics as any Kafka client sees them. Not every kcat
// decodes Avro (Debian's does not). The demo asks an installed one to decode only if it can.
func kcat(ctx context.Context, broker, registry string) []invitation {
	list := []invitation{
		{"the last ten watermarks of each partition, which are JSON",
			"kcat" + broker + `-C -t store.watermarks -o -10 -e -q -f '%k %s\n'`},
		{"orders as they come: partition, offset, size",
			"kcat" + broker + `-C -t store.orders -o end -q -f 'partition %p  offset %o  %S bytes\n'`},
	}
	list[0].shows += missing("kcat", "kcat")
	// of one that is not installed there is no output
	version, _ := exec.CommandContext(ctx, "kcat", "-V").CombinedOutput()
	if strings.Contains(string(version), "Avro") {
		list = append(list, invitation{"the last order of each partition, decoded",
			"kcat" + broker + "-C -t store.orders -o -1 -q -s key=avro -s value=avro -r " + registry})
	}
	return list
}

// missing names the package of a program, or returns "" if the program is installed.
func missing(program, ofPackage string) string {
	if _, err := exec.LookPath(program); err == nil {
		return ""
	}
	return " (Debian: apt-get install " + ofPackage + ")"
}

// shortest is a program's path, relative if it is within the current folder.
func shortest(path string) string {
	if here, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(short) {
			return quote(short)
		}
	}
	return quote(path)
}

// quote makes text one word of a shell's command line.
func quote(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,+@%:="
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
