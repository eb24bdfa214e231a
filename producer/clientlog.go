package producer

import (
	"github.com/twmb/franz-go/pkg/kgo"
)

// clientLog is the Kafka client's log without what repeats ours. While a broker is down its lines come many a
// second, and two of them that say the same must be equal, so that a logger can count them as one.
type clientLog struct{ kgo.Logger }

// Log is kgo.Logger's.
func (l clientLog) Log(level kgo.LogLevel, msg string, pairs ...any) {
	if msg == "group manage loop errored" { // groupErrors says it
		return
	}
	l.Logger.Log(level, msg, withoutBroker(pairs)...)
}

// withoutBroker drops the key "broker" where there is an address: one address goes by two of them, that of a
// seed and that of the broker.
func withoutBroker(pairs []any) []any {
	addr, kept := false, make([]any, 0, len(pairs))
	for i := 0; i+1 < len(pairs); i += 2 {
		addr = addr || pairs[i] == "addr"
		if pairs[i] != "broker" {
			kept = append(kept, pairs[i], pairs[i+1])
		}
	}
	if !addr {
		return pairs
	}
	return kept
}
