/** Which NodePools are only observed: everything is decided about them, and nothing is carried out. */
import { type NodePool, ownValue } from '@tenon/api'

/** On a NodePool. */
export const modeAnnotation = 'tenon.sh/mode'
export const observeMode = 'observe'

/** Whether the NodePool asks for it. */
export function isObserved({ metadata }: Pick<NodePool, 'metadata'>): boolean {
  return ownValue(metadata.annotations, modeAnnotation) === observeMode
}

/** What is wrong with the mode that a NodePool names; undefined when nothing is. */
export function modeProblem({ metadata }: Pick<NodePool, 'metadata'>): string | undefined {
  const mode = ownValue(metadata.annotations, modeAnnotation)
  return mode === undefined || mode === observeMode ? undefined : `"${mode}" is no mode`
}
