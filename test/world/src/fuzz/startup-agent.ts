/** An agent that removes startup taints from the nodes of a case. */
import { kinds, type Node, type Taint } from '@tenon/api'
import type { World } from '../world.ts'
import { startupTaint } from './generate/pools.ts'

/** Removes the startup taint some time after it was set, perhaps only after registration. */
export function playStartupAgent(world: World): void {
  const { local } = world.cluster.server
  const busyWith = new Set<string>()
  const look = ({ metadata: { name }, spec }: Node): void => {
    if (busyWith.has(name) || spec?.taints?.some(isStartupTaint) !== true) return
    busyWith.add(name)
    world.clock.after(20_000, () => {
      busyWith.delete(name)
      const taints = local.get(kinds.node, undefined, name)?.spec?.taints ?? []
      if (taints.some(isStartupTaint))
        local.patch(kinds.node, undefined, name, {
          spec: { taints: taints.filter((taint) => !isStartupTaint(taint)) },
        })
    })
  }
  local.subscribe<Node>(kinds.node, { added: look, updated: look })
}

const isStartupTaint = ({ key }: Taint): boolean => key === startupTaint.key
