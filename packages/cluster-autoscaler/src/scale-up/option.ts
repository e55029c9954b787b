import type { Pod } from '@tenon/api'
import type { NodeTemplate } from '../model.ts'

/** One possible scale-up: a number of nodes of one group. */
export interface ExpansionOption {
  readonly groupId: string
  readonly nodeCount: number
  readonly pods: readonly Pod[]
  /** The pods of each new node. */
  readonly podsByNode: readonly (readonly Pod[])[]
  readonly template: NodeTemplate
}
