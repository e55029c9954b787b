import { ownValue, type Resources } from '@tenon/api'

/** The first resource whose amounts exceed its limit together; undefined if there is none. */
export function exceededLimit(limits: Resources, amounts: readonly Resources[]): string | undefined {
  const total = (name: string) => amounts.reduce((sum, each) => sum + (ownValue(each, name) ?? 0), 0)
  return Object.entries(limits).find(([name, limit]) => total(name) > limit)?.[0]
}
