/** Reports groups and nodes that cannot be scaled at present, or are held (cluster-autoscaler.md 9, traps 3 and 4). */
import type { Node } from '@tenon/api'
import type { Logger } from '@tenon/runtime'
import type { EventSink } from '../model.ts'
import type { ResolvedGroups } from './node-groups.ts'

type Fields = Readonly<Record<string, string>> & { readonly reason: string }

interface Reporting {
  readonly events: EventSink
  readonly logger: Logger
}

export class GroupFaults {
  readonly #reporting: Reporting
  /** The last message of each group and node, so that it is logged once. */
  #logged = new Map<string, string>()

  constructor(reporting: Reporting) {
    this.#reporting = reporting
  }

  tell({ faults, unresolved, outside, holds }: ResolvedGroups, nodes: readonly Node[]): void {
    const { events } = this.#reporting
    const said = new Map<string, string>()
    for (const [id, reason] of faults) {
      events.status('Warning', 'NodeGroupUnavailable', `node group ${id} is not scaled: ${reason}`)
      this.#log(said, `group ${id}`, 'a node group is not scaled', { group: id, reason })
    }
    for (const [id, { forbids, reason }] of holds)
      this.#log(said, `hold of ${id}`, 'a node group is held', { group: id, forbids, reason }, 'info')
    for (const node of nodes) {
      const { name } = node.metadata
      const reason = unresolved.get(name)
      if (reason !== undefined) {
        events.object(
          node,
          'Warning',
          'NodeGroupUnknown',
          `the node group of this node cannot be told: ${reason}`,
        )
        this.#log(said, `node ${name}`, 'the node group of a node cannot be told', { node: name, reason })
      }
      const why = outside.get(name)
      if (why !== undefined)
        this.#log(said, `node ${name}`, 'a node is in no node group', { node: name, reason: why })
    }
    this.#logged = said
  }

  #log(
    said: Map<string, string>,
    about: string,
    message: string,
    fields: Fields,
    level: 'info' | 'warn' = 'warn',
  ): void {
    said.set(about, fields.reason)
    if (this.#logged.get(about) !== fields.reason) this.#reporting.logger[level](message, fields)
  }
}
