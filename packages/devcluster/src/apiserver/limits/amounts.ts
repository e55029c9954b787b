import { type Container, type PodSpec, quantityNanos, quantityText, type ResourceList } from '@tenon/api'

/** Amounts in billionths by resource name. */
export type Amounts = Map<string, bigint>

/** The amounts of a list; invalid quantities are left out. */
export function amountsOf(list: ResourceList | undefined): Amounts {
  const amounts: Amounts = new Map()
  for (const [name, text] of Object.entries(list ?? {})) {
    const nanos = quantityNanos(text)
    if (nanos !== undefined) amounts.set(name, nanos)
  }
  return amounts
}

export function addAmounts(into: Amounts, other: Amounts): void {
  for (const [name, amount] of other) into.set(name, (into.get(name) ?? 0n) + amount)
}

function raise(into: Amounts, other: Amounts): void {
  for (const [name, amount] of other) {
    const known = into.get(name)
    if (known === undefined || amount > known) into.set(name, amount)
  }
}

/**
 * The total requests or limits of a pod: its containers and sidecars, or an init container with the sidecars before it
 * if that is more, or the pod's own; plus its overhead.
 */
export function podAmounts(spec: PodSpec, kind: 'requests' | 'limits'): Amounts {
  const of = (container: Container) => amountsOf(container.resources?.[kind])
  const running: Amounts = new Map()
  for (const container of spec.containers) addAmounts(running, of(container))
  const sidecars: Amounts = new Map()
  const starting: Amounts = new Map()
  for (const container of spec.initContainers ?? []) {
    const own = of(container)
    if (container.restartPolicy === 'Always') {
      addAmounts(running, own)
      addAmounts(sidecars, own)
      raise(starting, sidecars)
      continue
    }
    const together = new Map(sidecars)
    addAmounts(together, own)
    raise(starting, together)
  }
  raise(running, starting)
  for (const [name, amount] of amountsOf(spec.resources?.[kind])) running.set(name, amount)
  for (const [name, amount] of amountsOf(spec.overhead)) {
    // Overhead alone does not limit a pod.
    if (kind === 'requests' || running.has(name)) running.set(name, (running.get(name) ?? 0n) + amount)
  }
  return running
}

const counted = /(?:memory|storage|hugepages-.*)$/

/** An amount of a resource in its usual units. */
export function amountText(name: string, nanos: bigint): string {
  return quantityText(nanos, counted.test(name) ? 'binary' : 'decimal')
}
