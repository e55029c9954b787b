/** Recommends node repair where it is off and the provider says which nodes are unhealthy (wanted.md 2). */
import type { Check } from '../check.ts'

export const nodeRepair: Check = {
  name: 'node-repair',
  run: ({ cloud, installation }) => {
    const { isRepairing } = installation
    const title =
      cloud.kind === 'unknown' || cloud.module.repairsNodes !== true ? undefined : cloud.module.title
    const off =
      title === undefined
        ? 'off'
        : `off; recommended for ${title}: --feature-gates=NodeRepair=true replaces unhealthy nodes`
    return Promise.resolve({ summary: isRepairing ? 'unhealthy nodes are replaced' : off, findings: [] })
  },
}
