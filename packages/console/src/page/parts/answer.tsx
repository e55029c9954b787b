import { useEffect, useRef, useState } from 'preact/hooks'
import type { ComponentChildren, JSX } from 'preact'
import { ask } from '../state/questions.ts'
import { tick } from '../state/store.ts'

/** The state of a request to the server. */
export type Asked<T> =
  | { readonly kind: 'waiting'; readonly last?: T }
  | { readonly kind: 'answered'; readonly answer: T }
  | { readonly kind: 'failed'; readonly message: string; readonly last?: T }

/**
 * Requests an answer, and again when `version` changes; at most every `everyMs`, and never before the previous
 * answer has arrived, which may take longer in a large cluster.
 * @param path undefined: no request.
 */
export function useAnswer<T>(path: string | undefined, version = 0, everyMs = 2000): Asked<T> {
  const [asked, setAsked] = useState<
    { readonly path: string; readonly version: number; readonly asked: Asked<T> } | undefined
  >()
  const [round, setRound] = useState(0)
  const isAsking = useRef(false)
  const slow = useSlow(version, everyMs)
  useEffect(() => {
    if (path === undefined) return undefined
    const over = new AbortController()
    const asking = async () => {
      isAsking.current = true
      const answer = await askedFor<T>(path, over.signal)
      if (answer === undefined) return
      isAsking.current = false
      setAsked({ path, version: slow, asked: answer })
    }
    void asking()
    return () => {
      over.abort()
    }
  }, [path, round])
  useEffect(() => {
    if (!isAsking.current && asked?.path === path && asked?.version !== slow) setRound((last) => last + 1)
  }, [path, asked, slow])
  return asked === undefined || asked.path !== path ? { kind: 'waiting' } : asked.asked
}

/** Like {@link useAnswer}, with the last answer until the next one arrives. */
export function useLatest<T>(path: string, version: number, everyMs: number): Asked<T> {
  const asked = useAnswer<T>(path, version, everyMs)
  const last = useRef<Asked<T>>(asked)
  if (asked.kind !== 'waiting' || last.current.kind === 'failed') last.current = asked
  return last.current
}

/** @returns undefined if the request was aborted. */
async function askedFor<T>(path: string, signal: AbortSignal): Promise<Asked<T> | undefined> {
  try {
    return { kind: 'answered', answer: await ask<T>(path, signal) }
  } catch (error) {
    if (signal.aborted) return undefined
    return { kind: 'failed', message: error instanceof Error ? error.message : String(error) }
  }
}

/** The value, updated at most every `everyMs`. */
function useSlow(value: number, everyMs: number): number {
  const [slow, setSlow] = useState(value)
  const latest = useRef(value)
  latest.current = value
  const isBehind = slow !== value
  useEffect(() => {
    if (!isBehind) return undefined
    const timer = setTimeout(() => {
      setSlow(latest.current)
    }, everyMs)
    return () => {
      clearTimeout(timer)
    }
    // Does not depend on the value: a stream of changes would postpone the update for ever.
  }, [isBehind])
  return slow
}

/** Renders the answer, or its state. */
export function Answer<T>({
  asked,
  awaits,
  children,
}: {
  readonly asked: Asked<T>
  /** What is asked for, such as `the offerings of each NodePool`. */
  readonly awaits: string
  readonly children: (answer: T) => ComponentChildren
}): JSX.Element {
  switch (asked.kind) {
    case 'waiting':
      return <Awaited what={awaits} />
    case 'failed':
      return (
        <p class="failure" role="alert">
          {asked.message}
        </p>
      )
    case 'answered':
      return <>{children(asked.answer)}</>
  }
}

/** Says what is awaited, for how long already, and how much of it is there (page.md 2). */
export function Awaited({ what, soFar }: { readonly what: string; readonly soFar?: string }): JSX.Element {
  const [since] = useState(() => Date.now())
  const seconds = Math.floor(Math.max(0, tick.value - since) / 1000)
  return (
    <p class="empty awaited">
      <span role="status">Waiting for {what}…</span>
      {/* Not announced each second. */}
      <span aria-hidden="true">
        {seconds > 0 && ` ${seconds} s`}
        {soFar !== undefined && `, ${soFar}`}
      </span>
    </p>
  )
}
