package storefake

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

var (
	categories = []string{"Accessories", "Active", "Blazers & Jackets", "Clothing Sets", "Dresses",
		"Fashion Hoodies & Sweatshirts",
		"Intimates", "Jeans", "Jumpsuits & Rompers", "Leggings", "Maternity", "Outerwear & Coats", "Pants",
		"Pants & Capris", "Plus",
		"Shorts", "Skirts", "Sleep & Lounge", "Socks", "Socks & Hosiery", "Suits", "Suits & Sport Coats",
		"Sweaters", "Swim",
		"Tops & Tees", "Underwear"}
	brands = []string{"Alder & Co", "Brightwater", "Café Nord", "Dune", "Everline", "Fjällmark", "Granit",
		"Harbor 9", "Ivo", "Juniper \"J\"",
		"Kestrel", "Lumen", "Maple/Row", "Nøva"}
	styles = []string{"Classic", "Slim", "Vintage", "Stretch", "Organic", "Ribbed", "Men's",
		"Women's 2-Pack"}
	departments = []string{"Men", "Women"}
)

// newProduct invents a product. To change its price, call newPrice.
func newProduct(chance *rand.Rand, id int64, created, updated time.Time) Row {
	category, brand := one(chance, categories), one(chance, brands)
	retail, price := newPrice(chance)
	return Row{"id": id, "cost": Money(dusty15(price * (.35 + .3*chance.Float64()))), "category": category,
		"name": one(chance, styles) + " " + category + " " + strconv.FormatInt(id, 10), "brand": brand,
		"retail_price": retail,
		"department":   one(chance, departments), "sku": fmt.Sprintf("%016X", uint64(mix(id, 7))),
		"created_at": created, "updated_at": updated}
}

// newPrice is a price of 2 to about 1000 in one of the set's forms: whole without a point, a clean decimal,
// or a float with its dust.
func newPrice(chance *rand.Rand) (Money, float64) {
	price := min(2+math.Exp(3.4+.8*chance.NormFloat64()), 999)
	switch at := chance.Float64(); {
	case at < .25:
		price = math.Round(price)
		return Money(strconv.FormatFloat(price, 'f', 0, 64)), price
	case at < .5:
		price = math.Round(price*100) / 100
		return Money(strconv.FormatFloat(price, 'f', -1, 64)), price
	case at < .75:
		price = math.Round(price*100) / 100
		return Money(dusty17(price)), price
	default:
		return Money(dusty15(price)), price
	}
}

// dusty17 returns a four-byte float with 17 digits: 59.99 becomes 59.990001678466797.
func dusty17(f float64) string {
	return digitsOf(float64(float32(f)), 17)
}

// dusty15 prints an eight-byte float with 15 digits: 2.51874985694885.
func dusty15(f float64) string { return digitsOf(f, 15) }

// digitsOf is f >= 1 to so many digits, without trailing zeros.
func digitsOf(f float64, n int) string {
	whole := len(strconv.FormatInt(int64(f), 10))
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(f, 'f', n-whole, 64), "0"), ".")
}
