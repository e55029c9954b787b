/** Keeps the canvas of the map up to date. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { PlacedPod } from '../../answers/placement.ts'
import { ask } from '../state/questions.ts'
import { type Box, type Cell, podBoxes } from './layout.ts'
import { Motion } from './motion.ts'
import { type Camera, type Colors, draw, podsFrom, seen } from './picture.ts'

/** Pods of the cells in view, loaded when the user zooms in. */
export function usePods(
  cells: readonly Cell[],
  view: Camera,
  size: { readonly width: number; readonly height: number },
): ReadonlyMap<string, readonly PlacedPod[]> {
  const [pods, setPods] = useState<ReadonlyMap<string, readonly PlacedPod[]>>(new Map())
  const near = useMemo(
    () =>
      seen(cells, view, size.width, size.height)
        .filter((cell) => cell.size * view.scale >= podsFrom && cell.row.node !== undefined)
        .slice(0, 100)
        .map(({ row }) => `${row.node ?? ''} ${row.pods ?? 0}`)
        .join('\n'),
    [cells, view, size],
  )
  useEffect(() => {
    if (near === '') return undefined
    const over = new AbortController()
    const timer = setTimeout(() => {
      const query = new URLSearchParams(near.split('\n').map((line) => ['node', line.split(' ')[0] ?? '']))
      ask<{ readonly pods: Readonly<Record<string, readonly PlacedPod[]>> }>(
        `/api/placement?${query.toString()}`,
        over.signal,
      ).then(
        (answer) => setPods(new Map(Object.entries(answer.pods))),
        () => undefined,
      )
    }, 300)
    return () => {
      clearTimeout(timer)
      over.abort()
    }
  }, [near])
  return pods
}

interface Drawing {
  readonly layout: readonly Cell[]
  readonly view: Camera
  readonly pods: ReadonlyMap<string, readonly PlacedPod[]>
  readonly chosen: string | undefined
  readonly size: { readonly width: number; readonly height: number }
}

/**
 * Draws changes in the next frame.
 * @returns the current positions of the cells.
 */
export function useDrawing(
  canvas: { readonly current: HTMLCanvasElement | null },
  drawing: Drawing,
): () => readonly Cell[] {
  const motion = useRef(new Motion<Cell>({ grows: true }))
  // Pods that appear because the user zooms in are not animated.
  const podMotion = useRef(new Motion<Box>({ grows: false }))
  const latest = useRef(drawing)
  const frame = useRef(0)
  latest.current = drawing
  const paint = useCallback(() => {
    frame.current = 0
    const element = canvas.current
    const context = element?.getContext('2d')
    if (element === null || context === null || context === undefined) return
    const { chosen: marked, size, view } = latest.current
    const ratio = devicePixelRatio
    const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)]
    if (element.width !== width) element.width = width
    if (element.height !== height) element.height = height
    const now = performance.now()
    const [cells, pods] = [motion.current.at(now), podMotion.current.at(now)]
    draw(context, { cells, camera: view, colors: colorsOf(element), chosen: marked, pods, ratio })
    if (motion.current.isMoving(now) || podMotion.current.isMoving(now))
      frame.current = requestAnimationFrame(paint)
  }, [canvas])
  const {
    layout,
    pods: placedPods,
    view: { scale },
  } = drawing
  useEffect(() => {
    motion.current.moveTo(layout, performance.now(), isStill())
  }, [layout])
  useEffect(() => {
    const near = layout.filter(({ size }) => size * scale >= podsFrom)
    podMotion.current.moveTo(podBoxes(near, placedPods), performance.now(), isStill())
  }, [layout, placedPods, scale])
  useEffect(() => {
    if (frame.current === 0) frame.current = requestAnimationFrame(paint)
  }, [drawing.layout, drawing.view, drawing.pods, drawing.chosen, drawing.size, paint])
  useEffect(() => {
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', paint)
    return () => {
      scheme.removeEventListener('change', paint)
      cancelAnimationFrame(frame.current)
    }
  }, [paint])
  return useCallback(() => motion.current.at(performance.now()), [])
}

function isStill(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches
}

function colorsOf(element: Element): Colors {
  const style = getComputedStyle(element)
  const color = (name: string) => style.getPropertyValue(name).trim()
  return {
    cell: color('--map-cell'),
    fill: color('--map-fill'),
    over: color('--map-over'),
    bad: color('--bad'),
    pod: color('--map-pod'),
    line: color('--quiet'),
    focus: color('--focus'),
  }
}

/** Dragging moves the map; a click selects. */
export function usePointer(
  view: Camera,
  setCamera: (camera: Camera) => void,
  press: (x: number, y: number) => void,
) {
  const start = useRef<
    { readonly x: number; readonly y: number; readonly view: Camera; isDrag: boolean } | undefined
  >(undefined)
  return {
    isDragging: () => start.current?.isDrag === true,
    handlers: {
      onPointerDown: (event: PointerEvent) => {
        if (event.button !== 0) return
        ;(event.currentTarget as Element).setPointerCapture(event.pointerId)
        start.current = { x: event.clientX, y: event.clientY, view, isDrag: false }
      },
      onPointerMove: (event: PointerEvent) => {
        const from = start.current
        if (from === undefined) return
        const [x, y] = [event.clientX - from.x, event.clientY - from.y]
        from.isDrag ||= Math.hypot(x, y) > 4
        if (from.isDrag)
          setCamera({
            ...from.view,
            x: from.view.x - x / from.view.scale,
            y: from.view.y - y / from.view.scale,
          })
      },
      onPointerUp: (event: PointerEvent) => {
        const from = start.current
        start.current = undefined
        if (from === undefined || from.isDrag) return
        const box = (event.currentTarget as Element).getBoundingClientRect()
        press(event.clientX - box.left, event.clientY - box.top)
      },
      onPointerCancel: () => {
        start.current = undefined
      },
    },
  }
}
