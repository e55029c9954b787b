/** A scheduler with a custom plugin, which rejects some pods on some nodes for unknown reasons. */
import type { Node, Pod } from '@tenon/api'
import { integerBetween } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { FaultDependencies } from './api-faults.ts'

const minute = 60_000

export class StubbornScheduler {
  #app = ''
  #isRefused: (node: Node) => boolean = () => false

  readonly extraFilter = (pod: Pod, node: Node): string | undefined =>
    this.#app !== '' && pod.metadata.labels?.['app'] === this.#app && this.#isRefused(node)
      ? 'node(s) were refused by world.tenon.sh/Stubborn'
      : undefined

  /** Decides once a minute whether a fault strikes. Call the result to stop. */
  play(world: World, { weather, clock, log }: FaultDependencies): () => void {
    let isStopped = false
    const step = (): void => {
      if (isStopped) return
      if (weather.strikes('stubbornScheduler')) {
        const random = weather.source('stubbornScheduler')
        const apps = [
          ...new Set(world.pods().flatMap(({ metadata }) => metadata.labels?.['app'] ?? [])),
        ].toSorted()
        this.#app = apps[random.uint32() % Math.max(1, apps.length)] ?? ''
        const share = random.uint32() % 4
        this.#isRefused = ({ metadata }) => hash(metadata.name) % 4 <= share
        const ms = integerBetween(random, minute, 30 * minute)
        const app = this.#app
        log.record('fault', `stubbornScheduler ${app} ${share + 1}/4 ${ms}`)
        clock.after(ms, () => {
          if (this.#app === app) this.#app = ''
        })
      }
      clock.after(minute, step)
    }
    clock.after(minute, step)
    return () => {
      isStopped = true
      this.#app = ''
    }
  }
}

function hash(name: string): number {
  let sum = 0
  for (const sign of name) sum = (sum * 31 + (sign.codePointAt(0) ?? 0)) % 65_521
  return sum
}
