/** Hosts of a /15. */
const mostAddresses = 2 ** 17

/** Assigns addresses: released ones first, in order of their release, then new ones. */
export class AddressPool {
  readonly #render: (host: number) => string
  readonly #free: string[] = []
  #next = 1

  /** @param render the address with a number. */
  constructor(render: (host: number) => string) {
    this.#render = render
  }

  take(): string {
    return this.#free.shift() ?? this.#render(this.#next++)
  }

  /** Reserves the addresses that an earlier pool assigned. */
  keep(addresses: ReadonlySet<string>): void {
    const left = new Set(addresses)
    while (left.size > 0 && this.#next < mostAddresses) {
      const address = this.#render(this.#next++)
      if (!left.delete(address)) this.#free.push(address)
    }
  }

  giveBack(address: string): void {
    this.#free.push(address)
  }
}

/** Public addresses of instances, from the block 198.18.0.0/15, which is reserved for benchmarks. */
export function publicAddresses(): AddressPool {
  return new AddressPool((host) => `198.${18 + (host >> 16)}.${(host >> 8) & 255}.${host & 255}`)
}
