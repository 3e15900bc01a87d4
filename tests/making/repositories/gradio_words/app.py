import gradio as gr


def count(text, least=1, kind="words"):
    """How many words or letters there are."""
    found = text.split() if kind == "words" else list(text)
    return len([one for one in found if len(one) >= least])


def size_of(image):
    return str(image.shape)


with gr.Blocks() as demo:
    text = gr.Textbox(label="Text")
    least = gr.Slider(1, 10, value=1, step=1, label="At least")
    kind = gr.Dropdown(["words", "letters"], value="words", label="Kind")
    counted = gr.Number(label="Count")
    gr.Button("Count").click(count, [text, least, kind], counted, api_name="count")
    gr.Button("Size").click(size_of, gr.Image(), gr.Textbox(), api_name="size")

if __name__ == "__main__":
    demo.launch(share=True, server_port=7860)
