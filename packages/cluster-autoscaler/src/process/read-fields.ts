import type { ReadFields } from '@tenon/kube'

/** Everything but managedFields, which are large and never read. */
export const usualFields: ReadFields = {
  members: { metadata: { members: { managedFields: false }, others: true } },
  others: true,
}
