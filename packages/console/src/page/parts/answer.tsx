import { useEffect, useRef, useState } from 'preact/hooks'
import type { ComponentChildren, JSX } from 'preact'
import { ask } from '../state/questions.ts'

/** An answer, while it is asked for, and why there is none. */
export type Asked<T> =
  | { readonly kind: 'waiting'; readonly last?: T }
  | { readonly kind: 'answered'; readonly answer: T }
  | { readonly kind: 'failed'; readonly message: string; readonly last?: T }

/**
 * Asks, and again whenever `version` is another one, at most each `everyMs`, and not before the last answer is there:
 * in a large cluster one may take longer than that.
 * @param path undefined asks nothing.
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
      const told = await askedFor<T>(path, over.signal)
      if (told === undefined) return
      isAsking.current = false
      setAsked({ path, version: slow, asked: told })
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

/** @returns undefined when nobody waits any more. */
async function askedFor<T>(path: string, signal: AbortSignal): Promise<Asked<T> | undefined> {
  try {
    return { kind: 'answered', answer: await ask<T>(path, signal) }
  } catch (error) {
    if (signal.aborted) return undefined
    return { kind: 'failed', message: error instanceof Error ? error.message : String(error) }
  }
}

/** The value, but not more often than that. */
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
    // Not of each value: a stream of changes would put it off for ever.
  }, [isBehind])
  return slow
}

/** The answer, or a word about it. */
export function Answer<T>({
  asked,
  children,
}: {
  readonly asked: Asked<T>
  readonly children: (answer: T) => ComponentChildren
}): JSX.Element {
  switch (asked.kind) {
    case 'waiting':
      return (
        <p class="empty" role="status">
          Asking…
        </p>
      )
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
