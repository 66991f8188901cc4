"""What LAS must cost long transfers: M/G/1 at 80 % load, the sizes of the EFD paper's setting.

Prints the mean response of transfers above 500 packets under LAS, over that under processor sharing
(Kleinrock, Queueing Systems II, 4.6-4.7). No TCP, no buffer.
"""

LOAD, EXPONENT = 0.8, 1.1


def ratio(largest: int, above: int = 500) -> float:
    weights = [size**-EXPONENT for size in range(1, largest + 1)]
    mean = sum(size * weight for size, weight in enumerate(weights, 1))
    arrivals = LOAD / mean  # a packet takes a unit of time
    tail = sum(weights)
    first = second = 0.0  # moments of the size, cut off at `size`
    las = sharing = 0.0
    for size, weight in enumerate(weights, 1):
        first += tail
        second += (2 * size - 1) * tail
        tail -= weight
        if size > above:
            left = 1 - arrivals * first
            las += weight * (arrivals * second / (2 * left**2) + size / left)
            sharing += weight * size / (1 - LOAD)
    return las / sharing


if __name__ == "__main__":
    for largest in (1000, 2000, 5000):
        print(f"sizes up to {largest} packets: {ratio(largest):.2f}")
