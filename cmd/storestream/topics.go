package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

func topicsCommand(env *environment) *cobra.Command {
	var form, label string
	export := &cobra.Command{
		Use:   "export",
		Short: "Print topics and access rights for other tools",
		Long: `Prints the topics as storestream would create them, and the least rights of
their users: storestream (kafka.sasl.username), a consumer ("analytics"),
people on call ("oncall"), and "oncall-admin", who may also request sweeps and
replays. Replace the last three by your own names. If you create the topics,
storestream needs no right to do so. It asks no server.

  --as kafka      commands of kafka-topics.sh and kafka-acls.sh
  --as strimzi    Kubernetes resources for Strimzi's operators
  --as terraform  resources of the provider Mongey/kafka`,
		Example: "  storestream topics export --as kafka\n" +
			"  storestream topics export --as strimzi --cluster events > topics.yaml\n" +
			"  storestream topics export --as terraform > topics.tf",
		Args: cobra.NoArgs,
	}
	export.Flags().StringVar(&form, "as", "", "`form`: kafka, strimzi or terraform")
	export.Flags().StringVar(&label, "cluster", "my-cluster", "`name` of the Kafka resource of Strimzi")
	forms := map[string]func(*config.Config, *producer.Cluster, string) (string, error){
		"kafka": exportKafka, "strimzi": exportStrimzi, "terraform": exportTerraform}
	names := slices.Sorted(maps.Keys(forms))
	_ = export.RegisterFlagCompletionFunc("as", // the flag is there
		cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	export.RunE = func(cmd *cobra.Command, _ []string) error {
		if forms[form] == nil {
			return usagef(cmd, "--as %q: expected %s", form, strings.Join(names, ", "))
		}
		return env.planned(func(cfg *config.Config, _ *schemas.Set, cluster *producer.Cluster) error {
			text, err := forms[form](cfg, cluster, label)
			env.print("%s", text)
			return err
		})
	}
	return group(&cobra.Command{Use: "topics", Short: "Export the topics and access rights in Kafka",
		Example: "  storestream topics export --as kafka"}, export)
}

// plainWord is a word that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// exportKafka returns commands of Kafka's own tools.
func exportKafka(cfg *config.Config, cluster *producer.Cluster, _ string) (string, error) {
	var text strings.Builder
	const nextLine = "\\\n "
	command := func(words ...string) {
		for i, word := range words {
			if word != nextLine && !plainWord.MatchString(word) {
				words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
			}
		}
		text.WriteString(cluster.Tool(words[0], words[1:]...) + "\n")
	}
	for _, topic := range producer.TopicSpecs(cluster, cfg.Enabled()...) {
		words := []string{"kafka-topics.sh", "--create", "--if-not-exists", "--topic", topic.Name, "--partitions",
			strconv.Itoa(int(topic.Partitions))}
		if topic.Replicas > 0 {
			words = append(words, "--replication-factor", strconv.Itoa(int(topic.Replicas)))
		}
		words = append(words, nextLine)
		for _, name := range slices.Sorted(maps.Keys(topic.Settings)) {
			words = append(words, "--config", name+"="+topic.Settings[name])
		}
		command(words...)
	}
	user := ""
	for _, right := range producer.Rights(cluster, cfg.Enabled()...) {
		if right.User != user {
			user = right.User
			text.WriteString("\n# rights of " + user + "\n")
		}
		words := []string{"kafka-acls.sh", "--add", "--allow-principal", "User:" + user, nextLine}
		if right.Prefixed {
			words = append(words, "--resource-pattern-type", "prefixed")
		}
		for _, name := range right.Names {
			words = append(words, "--"+right.On, name)
		}
		for _, operation := range right.Operations {
			words = append(words, "--operation", operation)
		}
		command(words...)
	}
	return text.String(), nil
}

// exportStrimzi returns resources of Kubernetes for the topic operator and the user operator of Strimzi.
func exportStrimzi(cfg *config.Config, cluster *producer.Cluster, label string) (string, error) {
	var text strings.Builder
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	var failed error
	resource := func(kind, name string, spec object) {
		failed = cmp.Or(failed, encoder.Encode(object{"apiVersion": "kafka.strimzi.io/v1", "kind": kind,
			"metadata": object{"name": name, "labels": object{"strimzi.io/cluster": label}}, "spec": spec}))
	}
	for _, topic := range producer.TopicSpecs(cluster, cfg.Enabled()...) {
		spec := object{"topicName": topic.Name, "partitions": topic.Partitions, "config": topic.Settings}
		if topic.Replicas > 0 {
			spec["replicas"] = topic.Replicas
		}
		resource("KafkaTopic", strings.ToLower(strings.ReplaceAll(topic.Name, "_", "-")), spec)
	}
	rights := producer.Rights(cluster, cfg.Enabled()...)
	for len(rights) > 0 {
		user, acls := rights[0].User, []object{}
		for ; len(rights) > 0 && rights[0].User == user; rights = rights[1:] {
			on := object{"type": strings.ReplaceAll(rights[0].On, "-id", "Id"), "patternType": "literal"}
			if rights[0].Prefixed {
				on["patternType"] = "prefix"
			}
			for _, name := range rights[0].Names {
				one := maps.Clone(on)
				one["name"] = name
				acls = append(acls, object{"resource": one, "operations": rights[0].Operations})
			}
		}
		spec := object{"authorization": object{"type": "simple", "acls": acls}}
		switch {
		case cfg.Kafka.SASL.Mechanism == "SCRAM-SHA-512":
			spec["authentication"] = object{"type": "scram-sha-512"}
		case cfg.Kafka.TLS.CertFile != "":
			spec["authentication"] = object{"type": "tls"}
		}
		resource("KafkaUser", user, spec)
	}
	return text.String(), cmp.Or(failed, encoder.Close())
}

// exportTerraform returns resources of the Terraform provider Mongey/kafka.
func exportTerraform(cfg *config.Config, cluster *producer.Cluster, _ string) (string, error) {
	var text strings.Builder
	quoted := func(s string) string { return strings.ReplaceAll(strconv.Quote(s), "${", "$${") }
	label := func(s string) string { return regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(s, "_") }
	if cfg.Kafka.ReplicationFactor < 1 {
		text.WriteString("# If the provider refuses -1, the brokers' default, set kafka.replication_factor.\n\n")
	}
	for _, topic := range producer.TopicSpecs(cluster, cfg.Enabled()...) {
		fmt.Fprintf(&text, "resource \"kafka_topic\" %q {\n  name               = %s\n  partitions         = %d\n"+
			"  replication_factor = %d\n  config = {\n", strings.TrimPrefix(topic.Name, cfg.Kafka.TopicPrefix),
			quoted(topic.Name), topic.Partitions, topic.Replicas)
		for _, name := range slices.Sorted(maps.Keys(topic.Settings)) {
			fmt.Fprintf(&text, "    %s = %s\n", quoted(name), quoted(topic.Settings[name]))
		}
		text.WriteString("  }\n}\n\n")
	}
	for _, right := range producer.Rights(cluster, cfg.Enabled()...) {
		pattern := map[bool]string{true: "Prefixed", false: "Literal"}[right.Prefixed]
		on := map[string]string{"topic": "Topic", "group": "Group", "transactional-id": "TransactionalID"}[right.On]
		for _, name := range right.Names {
			for _, operation := range right.Operations {
				fmt.Fprintf(&text, "resource \"kafka_acl\" %q {\n  resource_type                = %q\n"+
					"  resource_name                = %s\n  resource_pattern_type_filter = %q\n"+
					"  acl_principal                = %s\n  acl_host                     = \"*\"\n"+
					"  acl_operation                = %q\n  acl_permission_type          = \"Allow\"\n}\n\n",
					label("allow "+right.User+" "+operation+" "+on+" "+name), on, quoted(name), pattern,
					quoted("User:"+right.User), operation)
			}
		}
	}
	return text.String(), nil
}
