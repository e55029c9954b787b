import { isQuantity, quantityNanos } from '@tenon/api'
import type { Environment } from '@marcbachmann/cel-js'

class CelQuantity {
  readonly nanos: bigint

  constructor(nanos: bigint) {
    this.nanos = nanos
  }
}

/** The name of the type in expressions. */
export const quantityType = 'kubernetes.Quantity'

const nano = 1_000_000_000n

/** @throws Error if the text is not a quantity. */
export function celQuantity(text: string): CelQuantity {
  const nanos = quantityNanos(text)
  if (nanos === undefined) throw new Error(`quantity: ${JSON.stringify(text)} is not a quantity`)
  return new CelQuantity(nanos)
}

function compare(left: bigint, right: bigint): bigint {
  return left < right ? -1n : left > right ? 1n : 0n
}

export function registerQuantities(environment: Environment): void {
  const quantity = quantityType
  environment
    .registerType(quantity, CelQuantity)
    .registerFunction('isQuantity(string): bool', isQuantity)
    .registerFunction(`quantity(string): ${quantity}`, celQuantity)
    .registerFunction(`${quantity}.isInteger(): bool`, (q: CelQuantity) => q.nanos % nano === 0n)
    .registerFunction(`${quantity}.asInteger(): int`, (q: CelQuantity) => {
      if (q.nanos % nano !== 0n) throw new Error('cannot convert value to integer')
      return q.nanos / nano
    })
    .registerFunction(`${quantity}.asApproximateFloat(): double`, (q: CelQuantity) => Number(q.nanos) / 1e9)
    .registerFunction(`sign(${quantity}): int`, (q: CelQuantity) => compare(q.nanos, 0n))
    .registerFunction(
      `${quantity}.add(${quantity}): ${quantity}`,
      (a: CelQuantity, b: CelQuantity) => new CelQuantity(a.nanos + b.nanos),
    )
    .registerFunction(
      `${quantity}.add(int): ${quantity}`,
      (a: CelQuantity, b: bigint) => new CelQuantity(a.nanos + b * nano),
    )
    .registerFunction(
      `${quantity}.sub(${quantity}): ${quantity}`,
      (a: CelQuantity, b: CelQuantity) => new CelQuantity(a.nanos - b.nanos),
    )
    .registerFunction(
      `${quantity}.sub(int): ${quantity}`,
      (a: CelQuantity, b: bigint) => new CelQuantity(a.nanos - b * nano),
    )
    .registerFunction(
      `${quantity}.isGreaterThan(${quantity}): bool`,
      (a: CelQuantity, b: CelQuantity) => a.nanos > b.nanos,
    )
    .registerFunction(
      `${quantity}.isLessThan(${quantity}): bool`,
      (a: CelQuantity, b: CelQuantity) => a.nanos < b.nanos,
    )
    .registerFunction(`${quantity}.compareTo(${quantity}): int`, (a: CelQuantity, b: CelQuantity) =>
      compare(a.nanos, b.nanos),
    )
    .registerOperator(`${quantity} == ${quantity}`, (a: CelQuantity, b: CelQuantity) => a.nanos === b.nanos)
}
