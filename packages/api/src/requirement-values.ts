import type { Requirement } from './instance-types.ts'

/** Whether a requirement allows a value of its label. `Gt` and `Lt` compare integers. */
export function admitsValue({ operator, values = [] }: Requirement, value: string): boolean {
  const bound = Number(values[0])
  switch (operator) {
    case 'In':
      return values.includes(value)
    case 'NotIn':
      return !values.includes(value)
    case 'Exists':
      return true
    case 'DoesNotExist':
      return false
    case 'Gt':
      return Number(value) > bound
    case 'Gte':
      return Number(value) >= bound
    case 'Lt':
      return Number(value) < bound
    case 'Lte':
      return Number(value) <= bound
  }
}
