/**
 * `teams(N)`: each team has its own NodePool in some zones, and Deployments that are spread over the zones of
 * that NodePool alone. So the eligible domains differ between teams (reports.md 2).
 */
import { type InstanceType, labels, type Pod } from '@tenon/api'
import type { PoolInput, SchedulingInput } from '@tenon/engine'
import { integerBetween, type Random } from '@tenon/runtime'
import { oneOf, pool } from './catalogue.ts'
import { aPod, pick, spreadOver } from './pods.ts'

const team = 'example.com/team'
const zones = ['test-zone-1', 'test-zone-2', 'test-zone-3']
const deployments = 200

/** @param teams number of NodePools; with 0 all pods use one NodePool and select none. */
export function teamsInput(
  random: Random,
  pods: number,
  teams: number,
  catalogue: readonly InstanceType[],
): Omit<SchedulingInput, 'policy'> {
  const nameOf = (deployment: number) => `team-${deployment % Math.max(1, teams)}`
  return {
    pods: Array.from({ length: pods }, (_, serial) =>
      podOf(random, serial, teams === 0 ? undefined : nameOf),
    ),
    nodes: [],
    daemons: [],
    topology: { pods: [], nodes: new Map(), namespaces: new Map([['default', {}]]) },
    pools:
      teams === 0
        ? [pool('default', catalogue)]
        : Array.from({ length: teams }, (_, index) => poolOf(`team-${index}`, index, catalogue)),
  }
}

function podOf(random: Random, serial: number, teamOf: ((deployment: number) => string) | undefined): Pod {
  const deployment = integerBetween(random, 0, deployments - 1)
  const own = { app: `app-${deployment}` }
  const requests = {
    cpu: `${pick(random, [100, 250, 500, 1000, 1500])}m`,
    memory: `${pick(random, [100, 256, 512, 1024, 2048, 4096])}Mi`,
  }
  const chosen = teamOf && { nodeSelector: { [team]: teamOf(deployment) } }
  return aPod(serial, requests, own, { ...spreadOver(labels.zone, own), ...chosen })
}

/** Every other team does not use one of the zones. */
function poolOf(name: string, index: number, catalogue: readonly InstanceType[]): PoolInput {
  const own = index % 2 === 0 ? zones : zones.filter((_, zone) => zone !== index % zones.length)
  return pool(name, catalogue, { requirements: [oneOf(labels.zone, ...own), oneOf(team, name)] })
}
