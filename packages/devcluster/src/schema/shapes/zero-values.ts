import { ownValue } from '@tenon/api'
import zeroFields from './zero-fields.json' with { type: 'json' }

/** How the API server serializes the zero values of a struct's fields. */
export interface ZeroValues {
  /** Omitted: absent and zero are equal. */
  readonly dropped: ReadonlySet<string>
  /** Always serialized; a struct has its own zero fields. */
  readonly kept: readonly (readonly [field: string, value: '' | 0 | false | 'struct'])[]
}

const values = { string: '', number: 0, boolean: false } as const

const packagePrefix = /^io\.k8s\.(?:api|apimachinery\.pkg\.apis|[\w-]+\.pkg\.apis)\./

/** The zero values of a model such as `io.k8s.api.core.v1.Pod`; undefined if there are none. */
export function zeroValuesOf(model: string): ZeroValues | undefined {
  const facts = ownValue(zeroFields as Readonly<Record<string, string>>, model.replace(packagePrefix, ''))
  if (facts === undefined) return undefined
  const [dropped = '', kept = ''] = facts.split('|')
  return {
    dropped: new Set(dropped.split(' ')),
    kept: kept
      .split(' ')
      .filter((word) => word !== '')
      .map((word) => {
        const [field = '', type = ''] = word.split(':')
        return [field, ownValue(values, type as keyof typeof values) ?? 'struct'] as const
      }),
  }
}
