package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/storestream/storestream/config"
	"github.com/storestream/storestream/producer"
	"github.com/storestream/storestream/schemas"
)

// object is a JSON object.
type object = map[string]any

func schemaAsyncAPI(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "asyncapi",
		Short: "Print an AsyncAPI document of the topics",
		Long: `Prints an AsyncAPI document (3.0, JSON) of the topics: brokers, channels with
their partitions and settings, and messages with the Avro schemas of keys and
values. A tombstone is a message of its own. It asks no server.`,
		Example: "  storestream schema asyncapi > asyncapi.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return env.planned(func(cfg *config.Config, set *schemas.Set, cluster *producer.Cluster) error {
				return env.printJSON(asyncAPI(cfg, set, producer.TopicSpecs(cluster, cfg.Enabled()...)))
			})
		},
	}
}

// inKafkasWords returns one of AsyncAPI's bindings.
func inKafkasWords(binding object) object {
	binding["bindingVersion"] = "0.5.0"
	return object{"kafka": binding}
}

// asyncAPI returns the document of topics.
func asyncAPI(cfg *config.Config, set *schemas.Set, topics []producer.TopicSpec) object {
	protocol := "kafka"
	if cfg.Kafka.TLS.Enabled {
		protocol = "kafka-secure"
	}
	servers, channels, operations := object{}, object{}, object{}
	for i, broker := range cfg.Kafka.Brokers {
		servers[fmt.Sprintf("broker-%d", i+1)] = object{"host": broker, "protocol": protocol,
			"bindings": inKafkasWords(object{"schemaRegistryUrl": cfg.Registry.URL})}
	}
	for _, topic := range topics {
		name := strings.TrimPrefix(topic.Name, cfg.Kafka.TopicPrefix)
		channel := object{"address": topic.Name, "bindings": channelBinding(topic)}
		if r := set.Get(name); r != nil {
			channel["description"] = "The latest state of each row, under its id. A tombstone deletes a row."
			channel["messages"] = rowMessages(r)
		} else {
			channel["messages"] = object{"record": object{"contentType": "application/json",
				"payload": object{"type": "object"}, "description": "The key is text. The reference has the members."}}
		}
		channels[name] = channel
		operations["publish_"+name] = object{"action": "send", "channel": object{"$ref": "#/channels/" + name}}
	}
	return object{"asyncapi": "3.0.0", "defaultContentType": "avro/binary", "servers": servers,
		"channels": channels, "operations": operations,
		"info": object{"title": "storestream", "version": version(), "description": "Topics that are kept equal " +
			"to a commerce data service. Consumers read them with isolation.level=read_committed."}}
}

// channelBinding returns how a topic is created.
func channelBinding(topic producer.TopicSpec) object {
	settings := object{}
	for name, value := range topic.Settings {
		settings[name] = value
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			settings[name] = n
		}
	}
	settings["cleanup.policy"] = []string{topic.Settings["cleanup.policy"]}
	binding := object{"topic": topic.Name, "partitions": topic.Partitions, "topicConfiguration": settings}
	if topic.Replicas > 0 {
		binding["replicas"] = topic.Replicas
	}
	return inKafkasWords(binding)
}

// rowMessages returns the two kinds of record in r's topic.
func rowMessages(r *schemas.Resource) object {
	key := object{"type": "object", "required": []string{"id"}, "x-avro-schema": json.RawMessage(r.KeySchema()),
		"properties": object{"id": object{"type": "integer", "format": "int64"}}}
	message := func(name string, payload any) object {
		return object{"name": name, "payload": payload, "bindings": inKafkasWords(object{"key": key,
			"schemaIdLocation": "payload", "schemaIdPayloadEncoding": "confluent",
			"schemaLookupStrategy": "TopicNameStrategy"})}
	}
	row := message(r.RecordName, object{"schemaFormat": "application/vnd.apache.avro+json;version=1.9.0",
		"schema": json.RawMessage(r.ValueSchema())})
	if r.KeyID() != "" {
		row["headers"] = object{"type": "object", "properties": object{schemas.HeaderKeyID: object{"type": "string",
			"description": "Which privacy.key made the hashes of this row.", "pattern": "^[0-9a-f]{16}$"}}}
	}
	return object{"row": row, "tombstone": message(r.RecordName+"Tombstone", object{"type": "null"})}
}
