import type { ReadFields } from '@tenon/kube'

/** All but what says who wrote which field, which is much and not looked at. */
export const usualFields: ReadFields = {
  members: { metadata: { members: { managedFields: false }, others: true } },
  others: true,
}
