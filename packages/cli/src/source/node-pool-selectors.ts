/** `--node-pools`: the selector of one of several controllers that share a cluster. */
import { createHash } from 'node:crypto'
import { type LabelSelector, matchesSelector, type NodePool } from '@tenon/api'
import { CliError, startUpExitCode } from '../errors.ts'
import { labelSelectorOf } from '../kubectl/selectors.ts'

/**
 * @param name of the flag or variable, for messages.
 * @throws CliError naming the part that cannot be read.
 */
export function nodePoolSelector(name: string, text: string): LabelSelector {
  try {
    return labelSelectorOf(text)
  } catch (cause) {
    const message = cause instanceof Error ? cause.message.replace(/^error: /, '') : String(cause)
    throw new CliError(`${name}: ${message}`, { cause, exitCode: startUpExitCode })
  }
}

/** Each selector has a lease of its own, so that its controller leads beside the others. The chart builds the same name. */
export function leaseNameFor(name: string, selector: string): string {
  if (selector === '') return name
  return `${name}-${createHash('sha256').update(selector).digest('hex').slice(0, 8)}`
}

/** A controller, or what stands for one, and its selector as given. */
export interface SelectingController {
  readonly name: string
  readonly selector: LabelSelector
}

/** Why not exactly one controller selects the NodePool, a clause without a full stop; undefined if one does. */
export function selectionProblem(
  { metadata }: Pick<NodePool, 'metadata'>,
  controllers: readonly SelectingController[],
): string | undefined {
  const selecting = controllers.filter(({ selector }) => matchesSelector(selector, metadata.labels ?? {}))
  if (selecting.length === 1) return undefined
  const names = (selecting.length === 0 ? controllers : selecting).map(({ name }) => name).join(', ')
  return selecting.length === 0
    ? `its labels match no selector (--node-pools) of ${names}: no controller launches nodes for it`
    : `its labels match the selectors (--node-pools) of ${names}: the first that takes it serves it`
}
