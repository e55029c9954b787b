/** Texts on the page: what is not seen of them is spelled out, wherever they come from. */
import { type ComponentChildren, options, type VNode } from 'preact'
import { shownLines } from '../../text/shown.ts'

/** From now on no text of an object turns the direction of another, or hides a part of itself. */
export function startShowing(): void {
  const others = options.vnode?.bind(options)
  options.vnode = (vnode) => {
    const { props } = vnode as VNode<{ children?: ComponentChildren }>
    if (props.children !== undefined) props.children = shownChildren(props.children)
    others?.(vnode)
  }
}

function shownChildren(children: ComponentChildren): ComponentChildren {
  if (typeof children === 'string') return shownLines(children)
  return Array.isArray(children) ? children.map(shownChildren) : children
}
