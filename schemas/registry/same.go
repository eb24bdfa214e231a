package registry

import (
	"encoding/json"
	"reflect"
	"strings"
)

// same returns whether two texts are one Avro schema. Registries write schemas in other forms than they got
// them: with other spaces, another order of attributes, full names, or "string" for {"type": "string"}. If
// bare is set, only the attributes count that decide how bytes are read, and not doc or marks of the user's.
func same(text, other string, bare bool) bool {
	var a, b any
	return json.Unmarshal([]byte(text), &a) == nil && json.Unmarshal([]byte(other), &b) == nil &&
		reflect.DeepEqual(form(a, "", bare), form(b, "", bare))
}

// bareAttributes decide how bytes are read. name has the namespace in it.
var bareAttributes = map[string]bool{"type": true, "name": true, "fields": true, "symbols": true,
	"items": true, "values": true, "size": true, "logicalType": true, "precision": true, "scale": true,
	"default": true}

// form returns a node of a schema in the one form that same compares. space is the namespace around it.
func form(node any, space string, bare bool) any {
	switch n := node.(type) {
	case []any:
		for i, each := range n {
			n[i] = form(each, space, bare)
		}
	case map[string]any:
		if own, ok := n["namespace"].(string); ok {
			space = own
			delete(n, "namespace")
		}
		name, _ := n["name"].(string)
		if n["type"] == "record" || n["type"] == "enum" || n["type"] == "fixed" {
			if at := strings.LastIndex(name, "."); at >= 0 {
				space = name[:at]
			} else {
				n["name"] = strings.TrimPrefix(space+"."+name, ".")
			}
		}
		for key, value := range n {
			if n[key] = form(value, space, bare); bare && !bareAttributes[key] {
				delete(n, key)
			}
		}
		if len(n) == 1 && n["type"] != nil {
			return n["type"]
		}
	}
	return node
}
