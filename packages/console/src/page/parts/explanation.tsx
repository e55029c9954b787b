import type { JSX } from 'preact'
import type { Explained as ExplainedAnswer, MissAnswer } from '../../answers/explain.ts'
import { priceText } from '../format.ts'
import { header } from '../state/store.ts'
import { Answer, useAnswer } from './answer.tsx'
import { Command } from './copy.tsx'
import { Sentence } from './object-link.tsx'

const nouns = { pod: 'pod', node: 'node', nodepool: 'NodePool' } as const

/** What `tenon explain` says about an object. */
export function Explanation({
  kind,
  name,
  namespace,
  version = 0,
}: {
  readonly kind: 'pod' | 'node' | 'nodepool'
  readonly name: string
  readonly namespace?: string
  /** Requests the explanation again when it changes. */
  readonly version?: number
}): JSX.Element {
  const query = new URLSearchParams({ kind, name, ...(namespace !== undefined && { namespace }) })
  const asked = useAnswer<ExplainedAnswer | { readonly gone: string }>(
    `/api/explain?${query.toString()}`,
    version,
    10_000,
  )
  return (
    <Answer asked={asked} awaits={`the explanation of this ${nouns[kind]}`}>
      {(answer) => ('gone' in answer ? <p class="empty">{answer.gone}</p> : <Explained {...answer} />)}
    </Answer>
  )
}

function Explained({ lines, misses }: ExplainedAnswer): JSX.Element {
  return (
    <div class="explanation">
      <ul class="lines">
        {lines
          .filter((line) => misses === undefined || !/^(\+ |It would run after)/.test(line))
          .map((line, at) => (
            <li key={at} class={line.startsWith('  ') ? 'deep' : ''}>
              <Sentence text={line.trim()} />
            </li>
          ))}
      </ul>
      {misses !== undefined && <Misses misses={misses} />}
    </div>
  )
}

/** Single changes that would let a pod run. */
function Misses({ misses }: { readonly misses: readonly MissAnswer[] }): JSX.Element | null {
  if (misses.length === 0) return null
  const { currency = '' } = header.value ?? {}
  return (
    <>
      <h3>It would run after one of these changes, each decided again</h3>
      <ol class="misses">
        {misses.map((miss) => (
          <li key={`${miss.words} ${miss.field}`}>
            <p>
              <strong>{miss.words}</strong> <span class="quiet">({miss.field})</span>
              <br />
              {miss.running} of {miss.waiting} pods run, on <Sentence text={miss.place} />,{' '}
              {miss.pricePerHour === undefined
                ? 'at an unknown price'
                : miss.pricePerHour === 0
                  ? 'at no further cost'
                  : `for ${priceText(miss.pricePerHour)} ${currency} per hour`}
            </p>
            {miss.command !== undefined && <Command text={miss.command} what="patch" />}
          </li>
        ))}
      </ol>
    </>
  )
}
