import { ownValue } from '@tenon/api'
import zeroFields from './zero-fields.json' with { type: 'json' }

/** What becomes of the zero values of a struct's fields when the API server writes it. */
export interface ZeroValues {
  /** Not written: absent and zero are the same. */
  readonly dropped: ReadonlySet<string>
  /** Written when nobody set them; a struct is one whose own fields are zero. */
  readonly kept: readonly (readonly [field: string, value: '' | 0 | false | 'struct'])[]
}

const values = { string: '', number: 0, boolean: false } as const

const packagePrefix = /^io\.k8s\.(?:api|apimachinery\.pkg\.apis|[\w-]+\.pkg\.apis)\./

/** The facts of a model such as `io.k8s.api.core.v1.Pod`; undefined when no field has any. */
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
