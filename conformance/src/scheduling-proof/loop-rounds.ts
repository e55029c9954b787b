/** Rounds that need several decisions by design, because the zone of a new node is unknown before its launch. */
import { labels } from '@tenon/api'
import { zones } from './pools.ts'
import { apartFrom, near } from './pod-rounds.ts'
import type { Round } from './round.ts'

const { zone } = labels
// The larger pod is decided first, and either fits the node of the other.
const first = { cpu: '1', memory: '1Gi' }
const second = { cpu: '900m', memory: '1Gi' }

/** A pod with zonal anti-affinity whose target is placed first, in an unknown zone. */
export const unconstrainedTarget: Round = {
  kind: 'unconstrained-target',
  items: (make) => [
    make.pod({ name: 'target', requests: first }),
    make.pod({ name: 'averse', requests: second, spec: apartFrom('target', zone) }),
  ],
}

/** A pod with zonal anti-affinity that is placed first, and the plain pod that it avoids. */
export const averseFirst: Round = {
  kind: 'averse-first',
  items: (make) => [
    make.pod({ name: 'averse', requests: first, spec: apartFrom('target', zone) }),
    make.pod({ name: 'target', requests: second }),
  ],
}

/** Three pods that may not share a zone. */
export const oneEach: Round = {
  kind: 'one-each',
  items: (make) => [make.deployment(3, { name: 'lonely', requests: first, spec: apartFrom('lonely', zone) })],
}

/** Ten pods that follow a target of unknown zone, and ten that follow one with a given zone. */
export const followers: Round = {
  kind: 'followers',
  items: (make) => {
    // Of two architectures, so that the target of unknown zone cannot join the other's node.
    const here = { [labels.arch]: 'amd64' }
    const there = { [labels.arch]: 'arm64' }
    const following = (app: string, nodeSelector: Readonly<Record<string, string>>) => ({
      name: `${app}-follower`,
      requests: second,
      spec: { ...near(app, zone), nodeSelector },
    })
    return [
      make.pod({ name: 'target', requests: first, spec: { nodeSelector: here } }),
      make.deployment(10, following('target', here)),
      make.pod({ name: 'pinned', requests: first, spec: { nodeSelector: { ...there, [zone]: zones[1] } } }),
      make.deployment(10, following('pinned', there)),
    ]
  },
}

export const loopRounds: readonly Round[] = [unconstrainedTarget, averseFirst, oneEach, followers]
