/** Which labels nodes have from the moment they join (clever-cloud.md 9, 20). */
import { labelValueProblem, qualifiedNameProblem } from '@tenon/api'
import { omissionOf } from '../nodeclass/validation.ts'

type Labels = Readonly<Record<string, string>>

/** The labels that go into a NodeGroup, those of the claim before those of the node class, as far as the platform takes them. */
export function nodeLabels(ofClass: Labels, ofClaim: Labels): Labels {
  const all = new Map([...Object.entries(ofClass), ...Object.entries(ofClaim)])
  return Object.fromEntries(
    [...all].filter(([key, value]) => isLabel(key, value) && omissionOf(key, value) === undefined),
  )
}

/** A class that is stored may hold what the API server would not take for a label. */
function isLabel(key: string, value: unknown): value is string {
  return (
    typeof value === 'string' &&
    qualifiedNameProblem(key) === undefined &&
    labelValueProblem(value) === undefined
  )
}
