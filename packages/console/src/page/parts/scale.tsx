/** "What if this had more replicas?": the answer of `tenon simulate --scale` (page.md 2). */
import { useEffect, useState } from 'preact/hooks'
import type { JSX } from 'preact'
import type { WhatIfAnswer } from '../../answers/simulate.ts'
import { objectQuery, type ObjectRef } from '../../model/object-ref.ts'
import { askWith } from '../state/questions.ts'
import { Answer, type Asked } from './answer.tsx'
import { Outcome } from './outcome.tsx'

/** Those that have replicas, and that `--scale` knows. */
export const scaledKinds: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'ReplicaSet'])

/** The slider moves through many numbers before it rests. */
const askAfterMs = 400
const leastMost = 10

/** @param pods those that it has now. */
export function Scale({ of: ref, pods }: { readonly of: ObjectRef; readonly pods: number }): JSX.Element {
  const [replicas, setReplicas] = useState<number>()
  const asked = useSimulated(ref, replicas)
  const shown = replicas ?? pods
  const set = (value: number) => {
    if (Number.isFinite(value)) setReplicas(Math.max(0, Math.round(value)))
  }
  return (
    <section>
      <h2>What if it had more or fewer replicas?</h2>
      <div class="controls slider">
        <label>
          Replicas: {shown} (now {pods})
          <input
            type="range"
            min={0}
            max={Math.max(leastMost, 4 * pods, shown)}
            value={shown}
            onInput={(event) => set(event.currentTarget.valueAsNumber)}
          />
        </label>
        <label>
          Number
          <input
            type="number"
            min={0}
            value={shown}
            onInput={(event) => set(event.currentTarget.valueAsNumber)}
          />
        </label>
        <button type="button" onClick={() => set(2 * pods)}>
          Twice as many
        </button>
        {replicas !== undefined && (
          <button type="button" onClick={() => setReplicas(undefined)}>
            As it is
          </button>
        )}
        <a class="button" href={`/what-if?${objectQuery(ref)}`}>
          Change its manifest
        </a>
      </div>
      {asked !== undefined && (
        <Answer asked={asked} awaits="the nodes and the price with so many pods">
          {(answer) => <Outcome answer={answer} />}
        </Answer>
      )}
    </section>
  )
}

/** @returns undefined if nothing is asked. */
function useSimulated(
  { kind, name, namespace = 'default' }: ObjectRef,
  replicas: number | undefined,
): Asked<WhatIfAnswer> | undefined {
  const [asked, setAsked] = useState<Asked<WhatIfAnswer>>()
  useEffect(() => {
    if (replicas === undefined) {
      setAsked(undefined)
      return undefined
    }
    const over = new AbortController()
    setAsked({ kind: 'waiting' })
    const timer = setTimeout(() => {
      const scale = `${kind.toLowerCase()}/${namespace}/${name}=${replicas}`
      askWith<WhatIfAnswer>(`/api/simulate?scale=${encodeURIComponent(scale)}`, '', over.signal).then(
        (answer) => setAsked({ kind: 'answered', answer }),
        (error: unknown) => {
          if (over.signal.aborted) return
          setAsked({ kind: 'failed', message: error instanceof Error ? error.message : String(error) })
        },
      )
    }, askAfterMs)
    return () => {
      clearTimeout(timer)
      over.abort()
    }
  }, [kind, namespace, name, replicas])
  return asked
}
