"""The pairs of the zoo whose first mapping takes longest: for the tests by steps, for `bench.first` by seconds."""

HARDEST = (  # pairs of the zoo whose spatial choices, windows or full use keep a search longest from its first mapping
    ("matmul", "tileflow-cloud"),
    ("residual-diamond", "tileflow-cloud"),
    ("residual-diamond", "tileflow-edge"),
    ("conv-chain", "tileflow-edge"),
    ("conv-chain", "tileflow-cloud"),
    ("conv-chain", "tileflow-edge-code"),
    ("tileflow-bert-s", "tileflow-edge"),
    ("tileflow-bert-b", "tileflow-cloud"),
    ("tileflow-vit-16-h", "tileflow-edge-code"),
    ("tileflow-cc1", "tileflow-edge"),
    ("tileflow-cc2", "tileflow-edge-code"),
    ("tileflow-cc3", "tileflow-cloud"),
    ("tileflow-cc4", "tileflow-edge"),
    ("tileflow-cc5", "tileflow-edge-code"),
    ("mobilenet-block", "tileflow-edge"),
    ("mobilenet-block", "nvdla"),
    ("resnet18", "tileflow-edge-code"),
    ("vgg16", "tileflow-edge"),
    ("vgg16", "ffm-edge"),
    ("gpt3-175b:tokens=2048", "tpu-v4i-free"),
)
