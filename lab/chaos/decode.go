package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/twmb/avro"
)

// decoder reads Confluent's wire format by the schemas that the registry has, with another Avro library than
// storestream's own code.
type decoder struct {
	registry string
	schemas  map[uint32]*avro.Schema
}

func newDecoder(registry string) *decoder {
	return &decoder{registry: registry, schemas: map[uint32]*avro.Schema{}}
}

// decode is a value as Go's types.
func (d *decoder) decode(wire []byte) (map[string]any, error) {
	if len(wire) < 5 || wire[0] != 0 {
		return nil, fmt.Errorf("not Confluent's wire format: % x", wire[:min(len(wire), 8)])
	}
	id := binary.BigEndian.Uint32(wire[1:])
	schema := d.schemas[id]
	if schema == nil {
		var err error
		if schema, err = d.fetch(id); err != nil {
			return nil, fmt.Errorf("schema %d: %w", id, err)
		}
		d.schemas[id] = schema
	}
	var value map[string]any
	rest, err := schema.Decode(wire[5:], &value)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes after the value", len(rest))
	}
	return value, err
}

func (d *decoder) fetch(id uint32) (*avro.Schema, error) {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet,
		fmt.Sprintf("%s/schemas/ids/%d", d.registry, id), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var answer struct{ Schema string }
	if err := json.Unmarshal(body, &answer); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d: %.200s", resp.StatusCode, body)
	}
	return avro.Parse(answer.Schema)
}
