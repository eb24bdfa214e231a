package storefake

import "math/rand/v2"

// Streams of chance of one seed, so that more users do not change the orders.
const (
	streamFaults = iota + 1
	streamUsers
	streamProducts
	streamOrders
	streamTraffic
)

// pick draws one of values with the given odds, which add up to 1.
func pick[T any](chance *rand.Rand, values []T, odds []float64) T {
	at := chance.Float64()
	for i, odd := range odds {
		if at -= odd; at < 0 {
			return values[i]
		}
	}
	return values[len(odds)-1]
}

func one[T any](chance *rand.Rand, values []T) T { return values[chance.IntN(len(values))] }

// mix scatters (splitmix64).
func mix(n int64, salt uint64) int64 {
	z := uint64(n) + salt*0x9e3779b97f4a7c15 + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int64(z ^ z>>31)
}

// unit is a number in [0, 1) for n under salt.
func unit(n int64, salt uint64) float64 { return float64(uint64(mix(n, salt))>>11) / (1 << 53) }
