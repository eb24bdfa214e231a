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
	name := quote(filepath.Base(stream.path))
	lastMonth := time.Now().UTC().AddDate(0, -1, 0).Format(time.DateOnly)
	broker := " -b " + ports.broker.address() + " "
	list := []invitation{
		{"first, for storestream's commands here and in the documents", "export PATH=" +
			quote(filepath.Dir(stream.path)) + ":$PATH"},
		{"", "export STORESTREAM_CONFIG=" + quote(stream.config)},
		{"the newest orders, decoded", name + " tail orders -n 5"},
		{"is everything up to date, and how far is each topic?", name + " watermark list"},
		{"do the topics match the service, row by row?", name + " verify"},
		{"does storestream have all that it needs?", name + " check"},
		{"publish the orders of the last month again (it asks first)",
			name + " watermark reset orders --to " + lastMonth},
	}
	list = append(list, kcat(ctx, broker, registry)...)
	if apache != nil {
		list = append(list, invitation{"how far each consumer group is, by Kafka's own tool", groups(apache)})
	}
	list = append(list, invitation{"the status page as JSON" + missing("curl", "curl"),
		"curl -s http://" + ports.status.address() + "/status.json"})
	list = append(list, invitation{
		"stop storestream (or kill -9): the demo starts it again, and it continues",
		fmt.Sprintf("kill %d", stream.Pid())})
	if db != nil {
		list = append(list, invitation{
			"stop PostgreSQL, and see the page, `check` and the log; again: start it",
			fmt.Sprintf("kill -USR1 %d", os.Getpid()),
		})
	}
	if dsn := db.readerDSN(); dsn != "" {
		list = append(list, invitation{"what storestream's role reads" + missing("psql", "postgresql-client"),
			"psql " + quote(dsn) + " -c 'select status, count(*) from orders group by 1'"},
			invitation{"as the administrator: make order 7 a dead letter, then repair it",
				change(db, "update orders set total_amount = 1e25, updated_at = now() where id = 7")},
			invitation{"", change(db, "update orders set total_amount = 49.5, updated_at = now() where id = 7")},
			invitation{"as the administrator: add a column, which `check` then reports",
				change(db, "alter table orders add channel text default 'web'")})
	}
	return list
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
		{"the last ten watermarks of each partition",
			"kcat" + broker + `-C -t store.watermarks -o -10 -e -q -f '%k %s\n'`},
		{"new orders as they arrive: partition, offset, bytes",
			"kcat" + broker + `-C -t store.orders -o end -q -f '%p %o %S\n'`},
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

// quote makes text one word of a shell's command line.
func quote(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,+@%:="
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
