/** The labels that nodes have when they join (clever-cloud.md 9, 20). */
import { labelValueProblem, qualifiedNameProblem } from '@tenon/api'
import { omissionOf } from '../nodeclass/validation.ts'

type Labels = Readonly<Record<string, string>>

/**
 * The labels of a NodeGroup. Labels of the claim override those of the node class; labels that the platform refuses are
 * left out.
 */
export function nodeLabels(ofClass: Labels, ofClaim: Labels): Labels {
  const all = new Map([...Object.entries(ofClass), ...Object.entries(ofClaim)])
  return Object.fromEntries(
    [...all].filter(([key, value]) => isLabel(key, value) && omissionOf(key, value) === undefined),
  )
}

/** A stored node class may have values that are not valid labels. */
function isLabel(key: string, value: unknown): value is string {
  return (
    typeof value === 'string' &&
    qualifiedNameProblem(key) === undefined &&
    labelValueProblem(value) === undefined
  )
}
